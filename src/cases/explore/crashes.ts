import type { NewEvent } from '../../core/index.ts';
import type { Tracer } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import type { CaseStep } from '../manifest/manifest.ts';
import { firstName, nextLife } from './contract.ts';

/** A kill of a process right after an effect, before the process sees the outcome of that effect. */
export interface Crash {
  /** Name of the command: `worker_a`, `worker_a~2` for its first restart, or `*` for all processes. */
  readonly step: string;
  /** Number of effects that finish before the kill: those of the command, or for `*` those of all commands. */
  readonly after: number;
}

/** Kills processes at the given points, and decides how to restart them. */
export interface CrashWatch {
  readonly tracer: Tracer;
  /** Number of finished effects per command, which is also its number of crash points. */
  readonly entries: ReadonlyMap<string, number>;
  /** Returns the command that a user would start after the kill; `undefined` if every run of the command has ended. */
  restart(killed: CaseStep): CaseStep | undefined;
}

const runEnds: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled']);

export const endsRun = (events: readonly NewEvent[]): boolean => events.some(({ type }) => runEnds.has(type));

export interface CrashWatchOptions {
  readonly crashes: readonly Crash[];
  readonly kill: (step: string) => void;
  /** Names of the commands that are running. */
  readonly alive: () => readonly string[];
}

/** Stands for all commands: the whole machine crashes. */
export const allSteps = '*';

export function watchForCrashes({ crashes, kill, alive }: CrashWatchOptions): CrashWatch {
  let total = 0;
  /** Commands killed by a crash. A command that the case itself kills is not restarted. */
  const struck = new Set<string>();
  const strike = (step: string) => {
    struck.add(step);
    kill(step);
  };
  const entries = new Map<string, number>();
  /** Whether each run has ended, by run id, for each command by its name in the case. */
  const runs = new Map<string, Map<string, boolean>>();
  const runsOf = (step: string) => {
    const known = runs.get(firstName(step)) ?? new Map<string, boolean>();
    runs.set(firstName(step), known);
    return known;
  };
  const note = (step: string, effect: string, args: unknown) => {
    if (effect !== 'store.create' && effect !== 'store.append') return;
    const { runId, events } = args as { readonly runId: string; readonly events: readonly NewEvent[] };
    const known = runsOf(step);
    known.set(runId, (known.get(runId) ?? false) || endsRun(events));
  };
  return {
    entries,
    tracer: {
      granted: () => {},
      settled: ({ lane, effect, args }, _place, outcome) => {
        const step = topLane(lane.name);
        if (outcome.kind === 'ok') note(step, effect.name, args);
        const count = (entries.get(step) ?? 0) + 1;
        entries.set(step, count);
        total += 1;
        if (crashes.some(crash => crash.step === step && crash.after === count)) strike(step);
        if (crashes.some(crash => crash.step === allSteps && crash.after === total))
          for (const each of alive()) strike(each);
      },
    },
    restart: killed => {
      if (!struck.has(killed.name)) return undefined;
      const name = nextLife(killed.name);
      // A command that the case kills anyway might never end when restarted. It is only restarted to create the run that
      // later commands resume.
      if (killed.killAfter !== undefined)
        return killed.command === 'run' && runsOf(killed.name).size === 0 ? { ...killed, name } : undefined;
      if (killed.command !== 'run' && killed.command !== 'resume')
        return { ...killed, name, killAfter: undefined };
      const known = [...runsOf(killed.name)];
      const [unfinished] = known.find(([, ended]) => !ended) ?? [];
      if (unfinished !== undefined)
        return { ...killed, name, command: 'resume', args: [unfinished], killAfter: undefined };
      return known.length === 0 ? { ...killed, name, killAfter: undefined } : undefined;
    },
  };
}
