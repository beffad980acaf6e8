import type { CaseClock } from './case-clock.ts';

/** A clock that shows the last moment that somebody set it to, and goes on only then. */
export function steppedClock(startMs: number): CaseClock & { advanceTo(epochMs: number): void } {
  let now = startMs;
  return {
    now: () => now,
    endOfTurn: () => new Promise(resolve => setImmediate(resolve)),
    waitUntil: (_, signal) =>
      new Promise((_resolve, reject) => {
        const stop = () => reject(signal.reason);
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop, { once: true });
      }),
    advance: ms => {
      now += ms;
    },
    advanceTo: epochMs => {
      now = Math.max(now, epochMs);
    },
  };
}
