import { defineConfig } from 'vitest/config';

/** Real processes that kill themselves after every commit: thorough, and too slow for every save. */
export default defineConfig({
  test: {
    include: ['test/crash/**/*.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 900_000,
    hookTimeout: 60_000,
    maxConcurrency: 2,
  },
});
