import type { Outcome } from '../../effects/effect.ts';
import { type RecordedEntry, topLane } from '../../effects/recording/recording.ts';

/** How the turns of one function or session ended, in their order, whatever lane they were in. */
export type TurnsByKey = ReadonlyMap<string, readonly Outcome[]>;

/** Which function or session, in which step of the case. */
export const turnKey = (lane: string, key: string): string => `${topLane(lane)} ${key}`;

/** Of the long effect of that name, by what its arguments say it belongs to. */
export function turnsOf(
  entries: readonly RecordedEntry[],
  effect: string,
  keyOf: (args: unknown) => string,
): TurnsByKey {
  const turns = new Map<string, Outcome[]>();
  const under = new Map<string, string>();
  for (const { op, lane, args, outcome } of entries) {
    if (op === `${effect}.begin` && outcome === undefined) under.set(lane, turnKey(lane, keyOf(args)));
    const key = under.get(lane);
    if (op !== `${effect}.end` || key === undefined || !outcome) continue;
    turns.set(key, [...(turns.get(key) ?? []), outcome]);
  }
  return turns;
}
