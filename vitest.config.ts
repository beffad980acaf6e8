import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { roundsFactor } from './test/support/rounds.ts';

const build = 'test/support/build.ts';
const quarterOfAnHour = 900_000 * Math.max(1, roundsFactor);
const folderOf = (suite: string) => `test/${suite}/**/*.test.ts`;

/** Stories of workers, agents and captures in real processes, and the pages of the documentation, followed. */
const scenarios = ['test/docs/walkthrough*.test.ts', 'test/e2e/{agents,capture,demo,worker}*.test.ts'];

/** Suites that take longer than a save should: each is a project, and a folder below `test/` unless it has an `include`. */
const long = {
  scenarios: { include: scenarios, maxWorkers: Math.max(2, availableParallelism() - 1) },
  /** Real processes that kill themselves after every commit, and resume. */
  crash: { testTimeout: quarterOfAnHour, maxConcurrency: 2 },
  /** Hostile and broken input, files and limits of the system, given to the real CLI. */
  attack: { testTimeout: quarterOfAnHour, maxWorkers: 2 },
  /** Recorded cases under many schedules, with a crash at every effect. */
  explore: { testTimeout: quarterOfAnHour, fileParallelism: false },
  /** Many rounds, for races that show once in a hundred, and many processes that stop or fail. */
  slow: { testTimeout: quarterOfAnHour, fileParallelism: false },
  /** Minutes of workers that are killed at random moments. */
  soak: { testTimeout: quarterOfAnHour, fileParallelism: false },
  /** Real coding agents, installed from the registry, with a mock model whose replies each test sets. */
  agents: {
    globalSetup: [build, 'test/agents/support/setup.ts'],
    maxWorkers: 2,
    // Third-party CLIs rewrite their shared settings at any time. A second failure is a bug of Reprise.
    retry: 1,
  },
  /** Cases recorded and replayed many times, for timings that show once in a hundred. */
  tapes: { testTimeout: quarterOfAnHour, maxWorkers: 2 },
};

const longSuites = Object.keys(long);

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.{ts,tsx}', 'test/**/*.test.ts'],
          exclude: [...longSuites.map(folderOf), ...scenarios],
          globalSetup: [build],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // One core less, the default, would be one of two, and half of the time is spent waiting for processes.
          maxWorkers: Math.max(2, availableParallelism() - 1),
        },
      },
      ...Object.entries(long).map(([name, options], at) => ({
        test: {
          name,
          include: [folderOf(name)],
          globalSetup: [build],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Suites with different numbers of workers cannot share a group: they run one after another.
          sequence: { groupOrder: at + 1 },
          ...options,
        },
      })),
    ],
  },
});
