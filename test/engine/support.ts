import type { HistoryEvent } from '../../src/core/events.ts';
import type { Observer } from '../../src/engine/environment.ts';
import type { EventStore } from '../../src/store/port.ts';
import { deferred, type TestEngine, type TestEngineOptions, testEngine } from '../support/engine.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** Returns how each step ended, by path. The last end counts. */
export const endsOf = (events: readonly HistoryEvent[]): Record<string, string> =>
  Object.fromEntries(
    events.flatMap(({ type, step }) =>
      step && /^step\.(completed|failed|cancelled|skipped)$/.test(type) ? [[step, type.slice(5)]] : [],
    ),
  );

/** Returns the events of one type, optionally of one step. */
export const eventsOf = <T extends HistoryEvent['type']>(
  events: readonly HistoryEvent[],
  type: T,
  step?: string,
): Extract<HistoryEvent, { type: T }>[] =>
  events.filter(
    (event): event is Extract<HistoryEvent, { type: T }> =>
      event.type === type && (step === undefined || event.step === step),
  );

/** Lets a test wait for a committed event instead of for time to pass. */
export function eventWatch() {
  const seen: HistoryEvent[] = [];
  const watchers = new Set<() => void>();
  const observe: Observer = observation => {
    if (observation.kind !== 'events') return;
    seen.push(...observation.events);
    for (const look of watchers) look();
  };
  const seenEvent = (matches: (event: HistoryEvent) => boolean): Promise<HistoryEvent> => {
    const found = deferred<HistoryEvent>();
    const look = () => {
      const event = seen.find(matches);
      if (!event) return;
      watchers.delete(look);
      found.resolve(event);
    };
    watchers.add(look);
    look();
    return found.promise;
  };
  return {
    observe,
    seenEvent,
    seenType: (type: HistoryEvent['type'], step?: string) =>
      seenEvent(event => event.type === type && (step === undefined || event.step === step)),
  };
}

/** Returns an engine whose clock advances only when the test moves it. */
export function timedEngine(options: TestEngineOptions = {}): TestEngine & { readonly clock: VirtualClock } {
  const clock = new VirtualClock();
  return { ...testEngine({ ...options, clock, settings: { inboxMs: 60_000, ...options.settings } }), clock };
}

/** Wraps a store and lists the names of the writes that reach it. */
export function countingStore(store: EventStore): { readonly store: EventStore; readonly writes: string[] } {
  const writes: string[] = [];
  const counted = ['createRun', 'append', 'post', 'addProcess', 'removeProcess'] as const;
  const proxy = new Proxy(store, {
    get(target, property, receiver) {
      const value: unknown = Reflect.get(target, property, receiver);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (counted.some(name => name === property)) writes.push(String(property));
        return Reflect.apply(value, target, args);
      };
    },
  });
  return { store: proxy, writes };
}

export const at = '2026-01-01T00:00:00.000Z';
