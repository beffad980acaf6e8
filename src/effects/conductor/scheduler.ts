import type { Origin } from '../divergence/explain.ts';
import type { Outcome } from '../effect.ts';
import type { Witness } from '../recording/recording.ts';
import type { EntryPlace, Phase, TracedRequest } from '../tracer.ts';

/** How a lane came to be: opened by the runner, opened inside of another lane, or forked from one. */
export type Birth = 'top' | 'inner' | 'forked';

export interface AskedLane {
  readonly name: string;
  readonly birth: Birth;
  readonly parent: AskedLane | undefined;
}

/** A lane's next entry in the order, as it waits to be granted: a short effect, or a begin or an end of a long one. */
export interface Asked extends TracedRequest {
  readonly lane: AskedLane;
  /** As on tapes: the effect's name, of a long one with `.begin` or `.end`. */
  readonly op: string;
  /** Which entry of its lane it would be, from 0. */
  readonly i: number;
  readonly nextPhase: Phase;
  /** Cancelled: it ends so without being performed, or, if it has begun, whatever it answers. */
  readonly isDoomed: boolean;
  readonly origin: Origin;
}

/** Why an entry cannot be granted now. */
export type Obstacle =
  | { readonly kind: 'condition' }
  | { readonly kind: 'keys'; readonly key: string; readonly holders: readonly string[] }
  | { readonly kind: 'no answer' };

/** What a lane does, for messages. */
export type Standing =
  | { readonly kind: 'parked'; readonly lane: string; readonly asked: Asked; readonly obstacle?: Obstacle }
  | { readonly kind: 'granted'; readonly lane: string; readonly op: string }
  | { readonly kind: 'waits for inner lanes'; readonly lane: string }
  | { readonly kind: 'runs'; readonly lane: string };

/** What a player sees of the lanes when it is asked which goes on. */
export interface View {
  /** How many entries have been granted: the place of the next one. */
  readonly granted: number;
  /** What the lane waits to be granted, if it does. */
  askedBy(lane: string): Asked | undefined;
  /** What lanes wait to be granted, in the order of their names. */
  asked(): readonly Asked[];
  isAlive(lane: string): boolean;
  obstacleOf(asked: Asked): Obstacle | undefined;
  /** All lanes alive, in the order of their names, so that nothing depends on who came first. */
  standings(): readonly Standing[];
}

/** Something that no lane does, such as a crash of one. */
export type Happening = () => void | Promise<void>;

/**
 * Decides for the conductor: who goes on, and with which answer. What a method throws ends the performance, and no
 * lane can catch it.
 */
export interface Player {
  /**
   * Called when no lane runs and some wait. Gives one of those that wait and have no obstacle; or something that happens
   * outside of all lanes, after which it is asked again.
   */
  next(): Asked | Happening;
  /** Whether it is performed. If not, `answerOf` knows its answer, and its condition, which nothing changes, is not asked. */
  performs(asked: Asked): boolean;
  /** Whether the end of a long effect that has begun can come. */
  canEnd(asked: Asked): boolean;
  /** Of what is about to be answered; `cut off`: a crash came here, so that the lane stays where it is, for ever. */
  answerOf(asked: Asked, place: EntryPlace): Outcome | 'perform' | 'cut off';
  /** Of what was performed or cancelled: checks how it ended, and gives what the lane is told. */
  judge(asked: Asked, place: EntryPlace, outcome: Outcome): Outcome;
  laneEnded(lane: string, entries: number): void;
  /** All lanes have ended. */
  finished(witness: Witness): void;
}

/** One that knows of nothing outside of lanes. */
export interface LanePlayer extends Player {
  next(): Asked;
}

/** A new player for each performance. */
export type PlayerFactory<Of extends Player = Player> = (view: View) => Of;

const outside: ReadonlySet<string> = new Set(['keyboard.interrupt', 'inbox.next']);

/** Waits for a person or another process, which nobody is there to be. */
export const isOutside = ({ effect }: Asked): boolean =>
  outside.has(effect.name) && effect.awaits === undefined;

/** Whether a long effect that has begun may end, where everything is performed. */
export function canEndByItself(asked: Asked): boolean {
  const { effect, args } = asked;
  if (effect.awaits) return effect.awaits.isOver(args);
  if (effect.name === 'keyboard.interrupt') return (args as AbortSignal).aborted;
  return !isOutside(asked);
}
