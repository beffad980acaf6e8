import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../core/index.ts';

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
