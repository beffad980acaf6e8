import type { Mailbox, MailboxOptions } from '../world/mailbox.ts';
import type { Effect, EffectDefinition } from './effect.ts';

/** A thread of concurrent activity that was forked from another. */
export interface LaneRef {
  /** The parent's name and the number of the fork, so that it does not depend on timing: `run/3`. */
  readonly name: string;
}

/**
 * The one door to everything that is not a pure function of its arguments. Which mode is behind it is decided
 * once, where the program is put together; nothing on this side can tell.
 *
 * Lanes share nothing but effects. A lane has one effect under way at a time: to do two things at once, fork.
 */
export interface World {
  /**
   * Opens a lane that nobody forked, and runs it to its end. Inside of a lane, the new one is below it
   * (`run/engine#0`), and the outer one waits for it. Lane names are unique among the lanes alive.
   */
  open<T>(lane: string, body: () => Promise<T>): Promise<T>;

  /** Makes a kind of effect callable. */
  effect<Args, Result>(definition: EffectDefinition<Args, Result>): Effect<Args, Result>;

  /** Starts a lane below the current one. A body that throws makes the join of its lane throw. */
  fork(body: () => Promise<void>): LaneRef;

  /** Waits until the lanes have ended. Cancellation does not reach it: a lane outlives what it forked. */
  join(lanes: readonly LaneRef[]): Promise<void>;

  /**
   * Cancels the lanes and all below them: their long effect is aborted, their waits end, and so does the next of
   * either that they begin. Short effects still run, so that they can tidy up. Returns before they have ended.
   */
  cancel(lanes: readonly LaneRef[]): Promise<void>;

  /** Lanes send; the owner receives all that waits, in one effect. */
  mailbox<Message>(name: string, options?: MailboxOptions<Message>): Mailbox<Message>;
}

/** A world in which what a crash leaves behind can be seen without one. */
export interface AbandonableWorld extends World {
  /**
   * Leaves a lane and all below it where they are, for ever: nothing that they ask for ends, and what is performed
   * for them is aborted. Resolves when nothing is performed for them any more. Does nothing if there is no such lane.
   */
  abandon(lane: string): Promise<void>;
}
