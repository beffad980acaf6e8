import { createHash } from 'node:crypto';
import type { Clock, Ids } from '../../core/index.ts';
import type { Tracer } from '../../effects/index.ts';

/** A clock that a trigger can move forward. */
export interface CaseClock extends Clock {
  advance(ms: number): void;
}

/** Wraps the real clock and adds the durations that triggers advanced it by. */
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

/** Waiting on a clock that does not run: it ends only when it is aborted. */
const noWaiters: Pick<Clock, 'endOfTurn' | 'waitUntil'> = {
  endOfTurn: () => new Promise(resolve => setImmediate(resolve)),
  waitUntil: (_, signal) =>
    new Promise((_resolve, reject) => {
      const stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    }),
};

/** Returns a clock that shows the last time on the tape. Nothing waits on it, because waits end when the tape says so. */
export function replayClock(startMs: number): CaseClock & { readonly tracer: Tracer } {
  let now = startMs;
  return {
    now: () => now,
    ...noWaiters,
    advance: () => {},
    tracer: {
      granted: () => {},
      settled: ({ effect }, _place, outcome) => {
        if (effect.name === 'clock.now' && outcome.kind === 'ok') now = Math.max(now, Number(outcome.value));
      },
    },
  };
}

/** A clock that moves only when it is advanced. */
export interface VirtualClock extends CaseClock {
  advanceTo(epochMs: number): void;
}

/** Returns a clock with a fixed start that only the case moves. */
export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  let now = startMs;
  return {
    // Successive readings differ, as on a real clock.
    now: () => now++,
    ...noWaiters,
    advance: ms => {
      now += ms;
    },
    advanceTo: epochMs => {
      now = Math.max(now, epochMs);
    },
  };
}

const letters = '23456789bcdfghjkmnpqrstvwxz';

/** Returns ids that are unique within the case, in the same order in every performance. */
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
    nextKey: () => fixedKey,
  };
}

/** No test depends on the key, and every recording can have the same. */
const fixedKey = 'k2345';

/** Returns a clock that shows the last time it was set to. */
export function advancingClock(startMs: number): VirtualClock {
  let now = startMs;
  const advanceTo = (epochMs: number) => {
    now = Math.max(now, epochMs);
  };
  return { ...noWaiters, now: () => now, advanceTo, advance: ms => advanceTo(now + ms) };
}

/**
 * Returns ids that depend only on the command and on the number of previous ids, so they are the same in every schedule.
 * Liveness of incarnations is tracked per process, so an incarnation also contains `place`, the performance it belongs to.
 */
export function stableIds(step: string, place = ''): Ids {
  let pending = 0;
  const next = (kind: string): string =>
    createHash('sha256').update(`${kind} ${step} ${pending++}`).digest('hex');
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
    nextKey: () => fixedKey,
  };
}
