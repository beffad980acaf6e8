import { defineConfig } from 'vitest/config';

/** Cases recorded and replayed many times over: for orders and timings that show once in a hundred. */
export default defineConfig({
  test: {
    include: ['test/**/*.tapes.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 900_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
