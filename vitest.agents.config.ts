import { defineConfig } from 'vitest/config';

/** Real coding agents, installed from the registry, with a model that says what a test says. */
export default defineConfig({
  test: {
    include: ['test/agents/**/*.agents.ts'],
    globalSetup: ['test/support/build.ts', 'test/agents/support/setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // Programs of others share their settings and save them when they like: what fails twice is ours.
    retry: 1,
  },
});
