import { type CaseClock, nobodyWaits } from '../cases/perform/clock.ts';

/** A clock that shows the last moment that somebody set it to, and goes on only then. */
export function steppedClock(startMs: number): CaseClock & { advanceTo(epochMs: number): void } {
  let now = startMs;
  return {
    now: () => now,
    ...nobodyWaits,
    advance: ms => {
      now += ms;
    },
    advanceTo: epochMs => {
      now = Math.max(now, epochMs);
    },
  };
}
