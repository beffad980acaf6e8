import type { NewEvent } from '../core/events.ts';
import type { Json } from '../core/json.ts';
import { type Timestamp, toTimestamp } from '../core/time.ts';
import type { EventStore, NewRun, Owner } from './port.ts';

/** A fresh, empty store for one test. */
interface StoreUnderTest {
  readonly store: EventStore;
  /** Opens a second instance on the same data, as another process would. Absent for stores in memory. */
  readonly reopen?: () => Promise<EventStore>;
  /** Opens the same data for another project; `null` for all of them. */
  readonly inProject: (project: string | null) => Promise<EventStore>;
  readonly cleanup: () => Promise<void>;
}

export type OpenStore = () => Promise<StoreUnderTest>;

/** Calls `test` with a fresh store and cleans up after it. */
export const withStore = (open: OpenStore, test: (opened: StoreUnderTest) => Promise<void>) => async () => {
  const opened = await open();
  try {
    await test(opened);
  } finally {
    await opened.cleanup();
  }
};

/** Timestamp a number of milliseconds after an arbitrary start. */
export const time = (ms: number): Timestamp => toTimestamp(1_767_225_600_000 + ms);

export const owner = (incarnation: string): Owner => ({
  incarnation,
  host: 'localhost',
  pid: 4711,
  processStart: '1042',
});

export const started: NewEvent = {
  type: 'run.started',
  data: { format: 1, workflow: 'fix', input: { issue: 7 }, steps: ['plan', 'fix'] },
};

export const completed = (step: string, output: Json = null): NewEvent => ({
  type: 'step.completed',
  step,
  attempt: 1,
  data: { output },
});

/** A run owned by `ann` for 10 seconds, with `run.started` as its first event. */
export const newRun = (runId: string, changes: Partial<NewRun> = {}): NewRun => ({
  runId,
  workflow: 'fix',
  owner: owner('ann'),
  expiresAt: time(10_000),
  at: time(0),
  events: [started],
  ...changes,
});

/** Request of `bob` to acquire a run after `ann` has died. */
export const takeover = (runId: string, incarnation = 'bob') => ({
  runId,
  owner: owner(incarnation),
  now: time(10_000),
  expiresAt: time(20_000),
  provablyDead: 'ann',
});
