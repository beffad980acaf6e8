import { createHash } from 'node:crypto';
import type { Clock, Ids } from '../../core/time.ts';
import type { Tracer } from '../../effects/tracer.ts';

/** A clock that a trigger can set forward. */
export interface CaseClock extends Clock {
  advance(ms: number): void;
}

/** The machine's clock, ahead of it by what it was set forward. */
export function recordingClock(clock: Clock): CaseClock {
  let ahead = 0;
  const sleepers = new Set<() => void>();
  const now = () => clock.now() + ahead;
  const until = async (epochMs: number, signal: AbortSignal): Promise<void> => {
    while (now() < epochMs) {
      const woken = new AbortController();
      const wake = () => woken.abort();
      sleepers.add(wake);
      try {
        await clock.waitUntil(epochMs - ahead, AbortSignal.any([signal, woken.signal]));
      } catch {
        signal.throwIfAborted();
      } finally {
        sleepers.delete(wake);
      }
    }
  };
  return {
    now,
    endOfTurn: () => clock.endOfTurn(),
    waitUntil: (epochMs, signal) => until(epochMs, signal),
    advance: ms => {
      ahead += ms;
      for (const wake of [...sleepers]) wake();
    },
  };
}

/** Of clocks that stand still meanwhile: whoever waits is only ever told to stop. */
const nobodyWaits: Pick<Clock, 'endOfTurn' | 'waitUntil'> = {
  endOfTurn: () => new Promise(resolve => setImmediate(resolve)),
  waitUntil: (_, signal) =>
    new Promise((_resolve, reject) => {
      const stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    }),
};

/** Shows what the tape said last. Nothing waits for it: how long things took is on the tape too. */
export function replayClock(startMs: number): CaseClock & { readonly tracer: Tracer } {
  let now = startMs;
  return {
    now: () => now,
    ...nobodyWaits,
    advance: () => {},
    tracer: {
      granted: () => {},
      settled: ({ effect }, _place, outcome) => {
        if (effect.name === 'clock.now' && outcome.kind === 'ok') now = Math.max(now, Number(outcome.value));
      },
    },
  };
}

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

/** Time that goes on only when it is told to. */
export interface VirtualClock extends CaseClock {
  advanceTo(epochMs: number): void;
}

export function advancingClock(startMs: number): VirtualClock {
  let now = startMs;
  const advanceTo = (epochMs: number) => {
    now = Math.max(now, epochMs);
  };
  return { ...nobodyWaits, now: () => now, advanceTo, advance: ms => advanceTo(now + ms) };
}

/**
 * Names that depend on nothing but who asks, and how often: in every schedule the first run of a step has the same. Whether
 * an incarnation is alive is asked of the whole process: it also has the name of the place in which it is played.
 */
export function stableIds(step: string, place = ''): Ids {
  let asked = 0;
  const next = (kind: string): string =>
    createHash('sha256').update(`${kind} ${step} ${asked++}`).digest('hex');
  return {
    runId: () => next('run').slice(0, 10),
    incarnation: () => `${next('incarnation').slice(0, 16)}${place}`,
    sessionId: () => {
      const hex = next('session');
      return [
        hex.slice(0, 8),
        hex.slice(8, 12),
        `4${hex.slice(13, 16)}`,
        `8${hex.slice(17, 20)}`,
        hex.slice(20, 32),
      ].join('-');
    },
  };
}

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
