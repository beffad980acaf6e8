import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.{ts,tsx}', 'test/**/*.test.ts'],
    exclude: ['test/crash/**', 'node_modules/**'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // One core less, as is usual, would be one of two: and half of the time is spent waiting for processes.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    typecheck: { enabled: false },
  },
});
