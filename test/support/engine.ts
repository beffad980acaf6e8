import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openSession } from '../../src/agents/kinds.ts';
import type { HistoryEvent } from '../../src/core/events.ts';
import type { Clock } from '../../src/core/time.ts';
import { createLiveWorld } from '../../src/effects/live-world.ts';
import { systemClock, systemIds } from '../../src/effects/system.ts';
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
  /** Everything that was committed, as it was committed. */
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
  /** A new temporary one by default. */
  readonly folder?: string;
}

/** A real engine on a real folder, with a store in memory unless another is given. */
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
    isAlive: isSameProcess,
    worktrees: { folder: join(folder, '.reprise', 'workspaces'), setup: [], include: [] },
  };
  const engine = new Engine(environment, observation => {
    if (observation.kind === 'events') events.push(...observation.events);
    options.observe?.(observation);
  });
  return { engine, store, environment, events, history: runId => store.read(runId) };
}

/** Removed when the test has ended. */
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

/** A promise with its handles. */
export function deferred<T = void>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** Resolves when so many have called it: whoever waits here at the same time overlaps. */
export function barrier(count: number): () => Promise<void> {
  const all = deferred();
  let arrived = 0;
  return () => {
    if (++arrived === count) all.resolve();
    return all.promise;
  };
}
