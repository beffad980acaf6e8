import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../core/index.ts';

/** Clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  endOfTurn: () => new Promise(resolve => setImmediate(resolve)),
  waitUntil: (epochMs, signal) =>
    new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const stop = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const wait = () => {
        const left = epochMs - Date.now();
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

/** A longer delay overflows the timer, which then fires immediately. */
const longestTimeout = 2 ** 31 - 1;

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
