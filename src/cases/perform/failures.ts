import { type JsonObject, type NewEvent, RepriseError } from '../../core/index.ts';
import { type TracedRequest, type Tracer, tapedArgs } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import { formatError } from '../../terminal/index.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, KillAfter, Trigger } from '../manifest/manifest.ts';
import type { CaseFailure, CaseResult, CaseStatus, FailureKind } from '../result.ts';
import { checkExpectations } from './expectations.ts';
import type { PlayedStep } from './perform.ts';
import type { Stage } from './stage.ts';

interface CaseOutcome {
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

interface WatchOptions {
  readonly manifest: CaseManifest;
  readonly onTrigger: (trigger: Trigger) => void;
  readonly onKill: (step: string) => void;
}

/** Fires triggers and kills commands where the case says so, both when recording and when replaying. */
export interface Watch {
  readonly tracer: Tracer;
  /** Returns the triggers that have not fired. */
  unfired(): readonly Trigger[];
  /** Applies the triggers and the `kill_after` of `replaced`, counted from the start, to the command that replaces it. */
  adopt(step: string, replaced: string): void;
  /** Returns the commands with a `kill_after` that has not happened. */
  unkilled(): readonly string[];
}

export function watchCase({ manifest, onTrigger, onKill }: WatchOptions): Watch {
  const triggers = manifest.triggers.map(trigger => ({ trigger, left: trigger.nth }));
  const kills = new Map<string, { readonly killAfter: KillAfter; left: number }>();
  for (const { name, killAfter } of manifest.steps)
    if (killAfter) kills.set(name, { killAfter, left: killAfter.nth });
  return {
    tracer: {
      granted: (request, { phase }) => {
        if (phase === 'end' || triggers.length === 0) return;
        const step = topLane(request.lane.name);
        for (const waiting of triggers) {
          if (waiting.left === 0 || !reaches(waiting.trigger, step, request)) continue;
          waiting.left -= 1;
          if (waiting.left === 0) onTrigger(waiting.trigger);
        }
      },
      settled: (request, { phase }, outcome) => {
        if (kills.size === 0 || outcome.kind !== 'ok' || phase === 'begin') return;
        const step = topLane(request.lane.name);
        const kill = kills.get(step);
        if (!kill) return;
        kill.left -= occurrences(kill.killAfter, request);
        if (kill.left > 0) return;
        kills.delete(step);
        onKill(step);
      },
    },
    adopt: (step, replaced) => {
      for (const { trigger } of triggers.filter(each => each.trigger.step === replaced))
        triggers.push({ trigger: { ...trigger, step }, left: trigger.nth });
      const kill = kills.get(replaced);
      if (!kill) return;
      kills.delete(replaced);
      kills.set(step, { ...kill, left: kill.killAfter.nth });
    },
    unfired: () => triggers.filter(({ left }) => left > 0).map(({ trigger }) => trigger),
    unkilled: () => [...kills.keys()],
  };
}

function reaches(trigger: Trigger, step: string, request: TracedRequest): boolean {
  if (trigger.step !== step || trigger.label !== request.effect.name) return false;
  const fields = Object.entries(trigger.fields);
  return fields.length === 0 || holdsFields(tapedArgs(request), fields);
}

const holdsFields = (args: unknown, fields: readonly (readonly [string, unknown])[]): boolean =>
  typeof args === 'object' &&
  args !== null &&
  fields.every(([name, value]) => JSON.stringify((args as JsonObject)[name]) === JSON.stringify(value));

/** Counts the occurrences of the effect or event of `kill_after` in one effect. */
function occurrences(kill: KillAfter, { effect, args }: TracedRequest): number {
  if (kill.kind === 'effect') return effect.name === kill.effect ? 1 : 0;
  if (effect.name !== 'store.append' && effect.name !== 'store.create') return 0;
  const { events } = args as { readonly events: readonly NewEvent[] };
  const matches = ({ type, step }: NewEvent) =>
    type === kill.event && (kill.step === undefined || step === kill.step);
  return events.filter(matches).length;
}
