import type { Leg } from '../../cases/capture/legs.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';

/** After which effect of a step its process died: `nth` counts from 1. */
export interface KilledAfter {
  readonly effect: string;
  readonly nth: number;
}

/** A leg as far as a replay can go along with it. */
export interface CutLeg extends Leg {
  readonly killedAfter?: KilledAfter | undefined;
}

/**
 * Of a process that died, what came after the last effect that was done is left out: whether it happened, nobody knows.
 * A process that died before anything was done has nothing to replay, and gives `undefined`.
 */
export function cutLeg(leg: Leg): CutLeg | undefined {
  if (leg.exit !== undefined) return leg;
  const last = leg.entries.findLastIndex(isDone);
  const lastDone = leg.entries[last];
  if (!lastDone) return undefined;
  const entries = leg.entries.slice(0, last + 1);
  const effect = effectOf(lastDone);
  const nth = entries.filter(entry => isDone(entry) && effectOf(entry) === effect).length;
  // A script that was under way is never begun in a replay, because it never ends there.
  const activities = leg.activities.filter(each => each.kind !== 'shell' || each.end !== undefined);
  return { ...leg, entries, activities, killedAfter: { effect, nth } };
}

const isDone = ({ outcome }: RecordedEntry): boolean => outcome?.kind === 'ok';

export const effectOf = ({ op }: Pick<RecordedEntry, 'op'>): string => op.replace(/\.(begin|end)$/, '');
