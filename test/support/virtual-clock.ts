import type { Clock } from '../../src/core/time.ts';

interface Wait {
  readonly at: number;
  readonly resolve: () => void;
}

/**
 * Clock that stands still until a test advances it. It advances from one due timer to the next and lets all consequences of
 * a timer settle before the next one fires, so results do not depend on the speed of the machine.
 */
export class VirtualClock implements Clock {
  #now: number;
  readonly #waits = new Set<Wait>();

  constructor(startsAt = Date.UTC(2026, 0, 1)) {
    this.#now = startsAt;
  }

  now(): number {
    return this.#now;
  }

  endOfTurn(): Promise<void> {
    return new Promise(resolve => setImmediate(resolve));
  }

  waitUntil(epochMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (epochMs <= this.#now) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#waits.delete(wait);
        reject(signal.reason);
      };
      const wait: Wait = {
        at: epochMs,
        resolve: () => {
          signal.removeEventListener('abort', stop);
          resolve();
        },
      };
      signal.addEventListener('abort', stop, { once: true });
      this.#waits.add(wait);
    });
  }

  /** Advances the clock. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await this.#settle();
    for (let next = this.#nextDue(target); next; next = this.#nextDue(target)) {
      this.#now = Math.max(this.#now, next.at);
      this.#waits.delete(next);
      next.resolve();
      await this.#settle();
    }
    this.#now = target;
  }

  /** Advances the clock from timer to timer until the promise settles. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const note = () => {
      settled = true;
    };
    promise.then(note, note);
    await this.#settle();
    while (!settled) {
      const next = this.#nextDue(Number.POSITIVE_INFINITY);
      if (next) await this.advance(Math.max(0, next.at - this.#now));
      else await this.#settle();
    }
    return promise;
  }

  #nextDue(target: number): Wait | undefined {
    let next: Wait | undefined;
    for (const wait of this.#waits)
      if (wait.at <= target && wait.at < (next?.at ?? Number.POSITIVE_INFINITY)) next = wait;
    return next;
  }

  /** Waits for a few event-loop turns, which an event of the engine needs to reach its next timer. */
  async #settle(): Promise<void> {
    for (let turns = 0; turns < 12; turns++) await this.endOfTurn();
  }
}
