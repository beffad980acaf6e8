import { defineConfig } from 'vitest/config';

/** What takes long: many rounds, for races that show once in a hundred, and many processes that are stopped or fail. */
export default defineConfig({
  test: {
    include: ['test/**/*.slow.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 900_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
