import { type CaseClock, nobodyWaits } from '../../cases/perform/clock.ts';

/** Time that goes on only when it is told to. */
export interface VirtualClock extends CaseClock {
  advanceTo(epochMs: number): void;
}

export function virtualClock(startMs: number): VirtualClock {
  let now = startMs;
  const advanceTo = (epochMs: number) => {
    now = Math.max(now, epochMs);
  };
  return { ...nobodyWaits, now: () => now, advanceTo, advance: ms => advanceTo(now + ms) };
}
