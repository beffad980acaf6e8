import type { Clock } from '../../core/time.ts';
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
export const nobodyWaits: Pick<Clock, 'endOfTurn' | 'waitUntil'> = {
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
