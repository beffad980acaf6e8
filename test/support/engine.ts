import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openSession } from '../../src/agents/kinds.ts';
import type { HistoryEvent } from '../../src/core/events.ts';
import type { Clock } from '../../src/core/time.ts';
import { createLiveWorld } from '../../src/effects/live-world.ts';
import { systemClock, systemIds } from '../../src/effects/world.ts';
import { Engine } from '../../src/engine/engine.ts';
import { defaultSettings, type Environment, type Observer } from '../../src/engine/environment.ts';
import { runShellStep } from '../../src/process/shell-step.ts';
import { isSameProcess, thisProcess } from '../../src/process/table.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { EventStore } from '../../src/store/port.ts';

export interface TestEngine {
  readonly engine: Engine;
  readonly store: EventStore;
  readonly environment: Environment;
  /** Committed events, in the order of the commits. */
  readonly events: HistoryEvent[];
  history(runId: string): Promise<readonly HistoryEvent[]>;
}

export interface TestEngineOptions {
  readonly store?: EventStore;
  readonly clock?: Clock;
  readonly observe?: Observer;
  readonly settings?: Partial<Environment['settings']>;
  readonly ids?: Environment['ids'];
  readonly agents?: Environment['agents'];
  readonly isAlive?: Environment['isAlive'];
  /** Project folder. Defaults to a new temporary folder. */
  readonly folder?: string;
}

/** Creates a real engine on a real folder. The store defaults to one in memory. */
export function testEngine(options: TestEngineOptions = {}): TestEngine {
  const folder = options.folder ?? temporaryFolder();
  const store = options.store ?? memoryStore();
  const events: HistoryEvent[] = [];
  const environment: Environment = {
    world: createLiveWorld({ refuseStrays: true }),
    clock: options.clock ?? systemClock,
    ids: options.ids ?? systemIds,
    store,
    self: thisProcess(),
    projectRoot: folder,
    stateDir: join(folder, '.reprise', 'state'),
    env: process.env,
    settings: { ...defaultSettings, inboxMs: 5, graceMs: 1000, ...options.settings },
    agents: options.agents ?? new Map(),
    openSession,
    runShell: runShellStep,
    isAlive: options.isAlive ?? isSameProcess,
    worktrees: { folder: join(folder, '.reprise', 'workspaces'), setup: [], include: [] },
  };
  const engine = new Engine(environment, observation => {
    if (observation.kind === 'events') events.push(...observation.events);
    options.observe?.(observation);
  });
  return { engine, store, environment, events, history: runId => store.read(runId) };
}

/** Creates a temporary folder, which is removed when the test has ended. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** `type step` of each event, for readable expectations. */
export const summary = (events: readonly HistoryEvent[]): string[] =>
  events.map(({ type, step, attempt }) =>
    [type, step, attempt !== undefined && attempt > 1 ? `#${attempt}` : undefined].filter(Boolean).join(' '),
  );

/** Promise with its resolve and reject functions. */
export function deferred<T = void>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** Returns a function whose promises resolve once it has been called `count` times, which proves that the callers overlap. */
export function barrier(count: number): () => Promise<void> {
  const all = deferred();
  let arrived = 0;
  return () => {
    if (++arrived === count) all.resolve();
    return all.promise;
  };
}
