import { type CaseClock, nobodyWaits } from '../cases/perform/clock.ts';
import type { Ids } from '../core/time.ts';

/** A clock that begins at the same moment wherever a case is played, and that nothing but the case moves. */
export function virtualClock(
  startMs = Date.UTC(2026, 0, 1),
): CaseClock & { advanceTo(epochMs: number): void } {
  let now = startMs;
  return {
    // Two moments are never the same, as on a real clock.
    now: () => now++,
    ...nobodyWaits,
    advance: ms => {
      now += ms;
    },
    advanceTo: epochMs => {
      now = Math.max(now, epochMs);
    },
  };
}

const letters = '23456789bcdfghjkmnpqrstvwxz';

/** Names that nobody else in this case has, in the same order wherever it is played. */
export function countedIds(): Ids {
  let count = 0;
  const name = (length: number) => {
    let left = count++;
    let text = '';
    while (text.length < length) {
      text = `${letters[left % letters.length]}${text}`;
      left = Math.floor(left / letters.length);
    }
    return text;
  };
  return {
    runId: () => name(10),
    incarnation: () => name(16),
    sessionId: () => `00000000-0000-4000-8000-${String(count++).padStart(12, '0')}`,
  };
}
