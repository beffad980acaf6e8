import type { JsonObject, NewEvent } from '../../core/index.ts';
import { type TracedRequest, type Tracer, tapedArgs } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import type { CaseManifest, KillAfter, Trigger } from '../manifest/manifest.ts';

export interface WatchOptions {
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
