import { conflicts } from '../../../effects/effect.ts';

/** Something that more than one lane could touch. */
export interface Fact {
  /** Whoever changes it has to say that it writes one of these. */
  readonly keys: readonly string[];
  readonly value: string;
}

/** What lanes share, as it is at one moment, by what it is called for people: `refs/heads/main`, `the claim fix`. */
export type SharedState = ReadonlyMap<string, Fact>;

/** Kept under a name that says what it is, so that nobody keeps anything else there; no effect looks at it. */
export const isKeptApart = (ref: string): boolean => ref.startsWith('refs/reprise/parked/');

export interface Change {
  readonly name: string;
  readonly keys: readonly string[];
}

export function changesBetween(before: SharedState, after: SharedState): readonly Change[] {
  const changes: Change[] = [];
  for (const [name, { keys, value }] of before)
    if (after.get(name)?.value !== value) changes.push({ name, keys });
  for (const [name, { keys }] of after) if (!before.has(name)) changes.push({ name, keys });
  return changes;
}

/** What was changed by somebody who writes no more than this. */
export const undeclaredAmong = (changes: readonly Change[], writes: readonly string[]): readonly Change[] =>
  changes.filter(({ keys }) => !conflicts({ writes }, { writes: keys }));
