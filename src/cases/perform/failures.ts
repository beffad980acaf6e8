import { RepriseError } from '../../core/errors.ts';
import { formatError } from '../../terminal/errors.ts';
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

/** What a thrown error is as the failure of a case. */
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

/** Whether a replay of the case does to its repository what was done when it was recorded. */
export const isGitReal = ({ fidelity }: Pick<CaseManifest, 'fidelity'>): boolean => fidelity === 'sessions';

interface StepCheck {
  readonly stage: Stage;
  readonly manifest: CaseManifest;
  readonly watch: Watch;
  /** Whether files and commits are there to be looked at. */
  readonly isReal: boolean;
}

/** What does not hold that the case says of its steps. */
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
  message: `step ${step.name} had not ended after ${afterMs / 1000} s; it had printed:\n${output.trimEnd() || '(nothing)'}`,
  hint: 'give it more time with `timeout`, or find out what it waits for',
  file: step.position.file,
  line: step.position.line,
});

const watchFailures = (watch: Watch): readonly CaseFailure[] => [
  ...watch.unfired().map(
    ({ step, label, nth, position }): CaseFailure => ({
      kind: 'trigger',
      step,
      message: `the trigger on ${label}${nth > 1 ? ` (the ${nth}. time)` : ''} of step ${step} never fired`,
      hint: 'see which effects a step has in its tape (.vcr)',
      file: position.file,
      line: position.line,
    }),
  ),
  ...watch.unkilled().map(
    (step): CaseFailure => ({
      kind: 'trigger',
      step,
      message: `step ${step} was to be killed, and ended before that`,
      hint: 'see which effects and events a step has in its tape (.vcr), and change `kill_after`',
    }),
  ),
];
