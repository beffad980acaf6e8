import type { Outcome } from '../world/outcome.ts';
import type { EffectDefinition, Keys } from './effect.ts';

/** What a tracer gets to see of a request for an effect. */
export interface TracedRequest {
  readonly lane: { readonly name: string };
  readonly effect: EffectDefinition<unknown, unknown>;
  readonly args: unknown;
  readonly keys: Keys;
}

/**
 * One entry of the order in which effects were granted. A short effect is one entry, a long one two.
 * `ended` of a short effect, and of a long one that was cancelled before its begin, belongs to the same entry as `granted`.
 */
export type Phase = 'short' | 'begin' | 'end';

/** The place of an entry: `n` among all, `i` within its lane, both from 0. */
export interface EntryPlace {
  readonly n: number;
  readonly i: number;
  readonly phase: Phase;
}

/** Told of everything that crosses the boundary, in the order in which it was granted. Must not throw. */
export interface Tracer {
  /** A short effect is about to be performed, or a long one begins. */
  granted(request: TracedRequest, place: EntryPlace): void;
  /**
   * It ended. `place` is that of a new entry (`end`) for a long effect that had begun; otherwise the one that was
   * granted, or, for what was cancelled without being granted, a new one.
   */
  settled(request: TracedRequest, place: EntryPlace, outcome: Outcome): void;
}

/** `session.next.begin`: how an entry is called on tapes. */
export const entryName = ({ name }: { readonly name: string }, phase: Phase): string =>
  phase === 'short' ? name : `${name}.${phase}`;

/** What of the arguments is compared, as data. */
export const tapedArgs = ({
  effect,
  args,
}: {
  readonly effect: EffectDefinition<unknown, unknown>;
  readonly args: unknown;
}): unknown => (effect.taped?.args ? effect.taped.args(args) : args);

/** The outcome with what of a result is compared, as data. */
export const tapedOutcome = (effect: EffectDefinition<unknown, unknown>, outcome: Outcome): Outcome =>
  outcome.kind === 'ok' && effect.taped?.result
    ? { kind: 'ok', value: effect.taped.result(outcome.value) }
    : outcome;
