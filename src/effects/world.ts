import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../core/index.ts';
import type { Effect, EffectDefinition } from './effect.ts';

/** A thread of concurrent activity, forked from another. */
export interface LaneRef {
  /** Name of the parent and number of the fork, such as `run/3`, so that it does not depend on timing. */
  readonly name: string;
}

/**
 * The only way to call anything that is not a pure function of its arguments. The mode (live, recording, replay,
 * exploration) is chosen once, where the program is put together. Code that uses a world cannot tell the modes apart.
 *
 * Lanes share nothing but effects. A lane has one effect in progress at a time: to do two things in parallel, fork.
 */
export interface World {
  /**
   * Opens a root lane and runs it to its end. Called inside a lane, it opens a lane below that one (`run/engine#0`),
   * and the outer lane waits for it. Throws LANE_MISUSE if a live lane has the same name.
   */
  open<T>(lane: string, body: () => Promise<T>): Promise<T>;

  /** Returns the function that calls this kind of effect. */
  effect<Args, Result>(definition: EffectDefinition<Args, Result>): Effect<Args, Result>;

  /** Starts a lane below the current one. If its body throws, so does the join of the lane. */
  fork(body: () => Promise<void>): LaneRef;

  /** Waits until the lanes have ended. Cancellation does not interrupt it: a lane outlives the lanes that it forked. */
  join(lanes: readonly LaneRef[]): Promise<void>;

  /**
   * Cancels the lanes and all below them: a long effect or a wait in progress is aborted, and so is the next one that
   * they begin. Short effects still run, so that the lanes can clean up. Returns before the lanes have ended.
   */
  cancel(lanes: readonly LaneRef[]): Promise<void>;

  /** Creates a mailbox: any lane sends, and the owner receives all queued messages in one effect. */
  mailbox<Message>(name: string, options?: MailboxOptions<Message>): Mailbox<Message>;
}

/** A world that can simulate the crash of a lane. */
export interface AbandonableWorld extends World {
  /**
   * Freezes a lane and all lanes below it for good: none of their requests is ever answered, and effects in progress are
   * aborted. Resolves when none of their effects is being performed any more. Does nothing if there is no such lane.
   */
  abandon(lane: string): Promise<void>;
}

export interface Mailbox<Message> {
  send(message: Message): Promise<void>;
  /** Waits for a message, and takes all that are queued at the end of the event-loop turn. */
  receiveAll(): Promise<readonly Message[]>;
}

type DefineEffect = <Args, Result>(definition: EffectDefinition<Args, Result>) => Effect<Args, Result>;

export interface MailboxOptions<Message> {
  /** Message as data, for tapes. Defaults to the message itself. */
  readonly describe?: ((message: Message) => unknown) | undefined;
  /** Whether the message stays unchanged for good. Defaults to false. */
  readonly isLasting?: ((message: Message) => boolean) | undefined;
}

/** Creates a mailbox: state behind two effects that share a key. */
export function createMailbox<Message>(
  name: string,
  effect: DefineEffect,
  { describe = message => message, isLasting = () => false }: MailboxOptions<Message> = {},
): Mailbox<Message> {
  let waiting: Message[] = [];
  const keys = { writes: [`mailbox:${name}`] };
  const send = effect<Message, void>({
    name: 'mail.send',
    span: 'short',
    answer: 'inside',
    // The key already names the mailbox.
    taped: { args: describe, lasting: { args: isLasting } },
    keys: () => keys,
    perform: message => {
      waiting.push(message);
    },
  });
  const receiveAll = effect<void, readonly Message[]>({
    name: 'mail.receive',
    span: 'short',
    answer: 'inside',
    // The messages are on the tape already, where they were sent.
    taped: { args: () => undefined, result: messages => messages.length },
    keys: () => keys,
    enabled: () => waiting.length > 0,
    drains: true,
    perform: () => {
      const taken = waiting;
      waiting = [];
      return taken;
    },
  });
  return { send, receiveAll };
}

/** Largest correction backwards that the clock follows. */
const smallStepMs = 1_000;

/**
 * Returns a clock that shows the wall time but never goes back while the process lives: if the wall clock is set back, it
 * continues with the monotonic clock. So a wait of 3 seconds never takes an hour, and no duration is negative. It follows
 * the wall clock forward, because a suspended machine must not prolong a wait by the time it was suspended.
 */
export function steadyClock(wallMs: () => number, monotonicMs: () => number): () => number {
  let anchor = { wall: wallMs(), monotonic: monotonicMs() };
  let last = anchor.wall;
  return () => {
    const [wall, monotonic] = [wallMs(), monotonicMs()];
    const expected = Math.round(anchor.wall + monotonic - anchor.monotonic);
    const isFollowed = wall > expected - smallStepMs;
    if (isFollowed) anchor = { wall, monotonic };
    last = Math.max(last, isFollowed ? wall : expected);
    return last;
  };
}

const now = steadyClock(
  () => Date.now(),
  () => performance.now(),
);

/** Clock of the machine. */
export const systemClock: Clock = {
  now,
  endOfTurn: () => new Promise(resolve => setImmediate(resolve)),
  waitUntil: (epochMs, signal) =>
    new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const stop = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const wait = () => {
        const left = epochMs - now();
        if (left <= 0) {
          signal.removeEventListener('abort', stop);
          resolve();
        } else timer = setTimeout(wait, Math.min(left, longestTimeout));
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      wait();
    }),
};

/** A timer runs on the monotonic clock, so that a long wait has to look at the wall clock now and then. */
const longestTimeout = 5_000;

/** No vowels, so that no id spells a word, and no easily confused characters. */
const alphabet = '23456789bcdfghjkmnpqrstvwxz';

const randomName = (length: number): string =>
  Array.from(randomBytes(length), byte => alphabet[byte % alphabet.length]).join('');

/** Random ids, long enough that collisions are practically impossible. */
export const systemIds: Ids = {
  runId: () => randomName(10),
  incarnation: () => randomName(16),
  sessionId: () => randomUUID(),
  nextKey: () => `k${randomName(5)}`,
};

/** Calls back after all callbacks that are already due, so that their output can be written in one go. */
export const atEndOfTurn = (callback: () => void): void => void setImmediate(callback);
