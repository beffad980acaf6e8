import type { NewEvent } from '../../core/events.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { Tracer } from '../../effects/tracer.ts';
import type { CaseStep } from '../manifest/manifest.ts';
import { firstName, nextLife } from './contract.ts';

/** That the process of a step is killed right after so many of its entries have ended, before it hears of the last. */
export interface Crash {
  /** `worker_a`, and `worker_a~2` for what was started in its place; `*` is all of them, after so many entries of all. */
  readonly step: string;
  readonly after: number;
}

/** Sees to crashes, and knows how to go on after one. */
export interface CrashWatch {
  readonly tracer: Tracer;
  /** How many entries each step has had, and with it how many moments to crash at. */
  readonly entries: ReadonlyMap<string, number>;
  /** What a person would start after the step was killed; nothing if all that it had begun has ended. */
  restart(killed: CaseStep): CaseStep | undefined;
}

const runEnds: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled']);

export const endsRun = (events: readonly NewEvent[]): boolean => events.some(({ type }) => runEnds.has(type));

export interface CrashWatchOptions {
  readonly crashes: readonly Crash[];
  readonly kill: (step: string) => void;
  /** The steps that are being played. */
  readonly alive: () => readonly string[];
}

/** In the place of a step: the whole machine. */
export const everybody = '*';

export function watchForCrashes({ crashes, kill, alive }: CrashWatchOptions): CrashWatch {
  let total = 0;
  /** Whom nobody but a crash has killed: what a case kills, it wants to be gone. */
  const struck = new Set<string>();
  const strike = (step: string) => {
    struck.add(step);
    kill(step);
  };
  const entries = new Map<string, number>();
  /** By the first name of the step; whether they have ended. */
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
        if (crashes.some(crash => crash.step === everybody && crash.after === total))
          for (const each of alive()) strike(each);
      },
    },
    restart: killed => {
      if (!struck.has(killed.name)) return undefined;
      const name = nextLife(killed.name);
      // Somebody whom the case kills sooner or later may never end by itself; but what it is to begin, others go on with.
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
