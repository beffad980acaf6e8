import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../core/time.ts';

/** The machine's own clock. */
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

/** A longer delay overflows the timer and fires at once. */
const longestTimeout = 2 ** 31 - 1;

/** No vowels, so that no id spells a word, and no characters that look alike. */
const alphabet = '23456789bcdfghjkmnpqrstvwxz';

const randomName = (length: number): string =>
  Array.from(randomBytes(length), byte => alphabet[byte % alphabet.length]).join('');

/** Random names, long enough that two never meet. */
export const systemIds: Ids = {
  runId: () => randomName(10),
  incarnation: () => randomName(16),
  sessionId: () => randomUUID(),
};

/** Calls back when everything that can happen at once has happened: what is written then is written once. */
export const atEndOfTurn = (callback: () => void): void => void setImmediate(callback);
