import { RepriseError } from '../../core/index.ts';
import { formatError } from '../../terminal/index.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import type { CaseFailure, CaseResult, CaseStatus, FailureKind } from '../result.ts';
import { checkExpectations } from './expectations.ts';
import type { PlayedStep } from './perform.ts';
import type { Stage } from './stage.ts';
import type { Watch } from './triggers.ts';

export interface CaseOutcome {
  readonly status: CaseStatus;
  readonly failures: readonly CaseFailure[];
  readonly notes?: readonly string[] | undefined;
  readonly played?: readonly PlayedStep[] | undefined;
}

export const resultOfCase = (
  { name, group, displayFile }: FoundCase,
  { status, failures, notes = [], played = [] }: CaseOutcome,
  durationMs: number,
): CaseResult => ({
  name,
  group,
  file: displayFile,
  status,
  durationMs,
  failures,
  notes,
  steps: played.map(step => ({ name: step.step.name, exitCode: exitCodeOf(step), output: step.output })),
});

const exitCodeOf = ({ end }: PlayedStep): number | null => (end.kind === 'exited' ? end.code : null);

/** Converts a RepriseError into the failure of a case. Rethrows any other error. */
export function failureOfError(error: unknown, file: string): CaseFailure {
  if (!(error instanceof RepriseError)) throw error;
  const { message, hint, position } = error;
  return {
    kind: kindOf(error),
    message: kindOf(error) === 'definition' ? formatError(error, { color: false }) : message,
    ...(hint === undefined ? {} : { hint }),
    file: position?.file ?? file,
    ...(position ? { line: position.line } : {}),
  };
}

function kindOf({ code }: RepriseError): FailureKind {
  switch (code) {
    case 'REPLAY_DIVERGED':
    case 'DEADLOCK':
    case 'LANE_MISUSE':
      return 'diverged';
    case 'DEFINITION_INVALID':
      return 'definition';
    case 'SECRET_LEAKED':
      return 'leak';
    default:
      return 'error';
  }
}

/** Whether a replay of the case runs git for real. */
export const isGitReal = ({ fidelity }: Pick<CaseManifest, 'fidelity'>): boolean => fidelity === 'sessions';

interface StepCheck {
  readonly stage: Stage;
  readonly manifest: CaseManifest;
  readonly watch: Watch;
  /** Whether the test repository has the files and commits of the case. */
  readonly isReal: boolean;
}

/** Returns unmet expectations, timeouts, unfired triggers and kills that did not happen. */
export async function stepFailures(
  played: readonly PlayedStep[],
  { stage, manifest, watch, isReal }: StepCheck,
): Promise<readonly CaseFailure[]> {
  const main = manifest.base?.branch ?? 'main';
  const unmet = await Promise.all(
    played.map(async step => {
      if (step.end.kind === 'timed-out') return [timedOut(step, step.end.afterMs)];
      if (step.end.kind === 'killed') return [];
      const { name, position, expect } = step.step;
      return checkExpectations({
        step: { name, position },
        expect: {
          ...expect,
          exit: expect.exit ?? (manifest.form === 'worker_test' ? undefined : 0),
          ...(isReal ? {} : { files: {}, main: undefined }),
        },
        exitCode: exitCodeOf(step),
        output: step.output,
        repo: { git: stage.git, main },
      });
    }),
  );
  return [...unmet.flat(), ...watchFailures(watch)];
}

const timedOut = ({ step, output }: PlayedStep, afterMs: number): CaseFailure => ({
  kind: 'timeout',
  step: step.name,
  message: `command ${step.name} timed out after ${afterMs / 1000} s; its output:\n${output.trimEnd() || '(empty)'}`,
  hint: 'if it only needs more time, set a longer `timeout` in the case file',
  file: step.position.file,
  line: step.position.line,
});

const watchFailures = (watch: Watch): readonly CaseFailure[] => [
  ...watch.unfired().map(
    ({ step, label, nth, position }): CaseFailure => ({
      kind: 'trigger',
      step,
      message: `the trigger on effect ${label}${nth > 1 ? ` (nth = ${nth})` : ''} of command ${step} never fired`,
      hint: `the effects of the command are on its tape: the file *__${step}.vcr in the case folder`,
      file: position.file,
      line: position.line,
    }),
  ),
  ...watch.unkilled().map(
    (step): CaseFailure => ({
      kind: 'trigger',
      step,
      message: `command ${step} ended before \`kill_after\` happened`,
      hint: `correct \`kill_after\`; the effects of the command are on its tape: the file *__${step}.vcr in the case folder`,
    }),
  ),
];
