import { defineConfig } from 'vitest/config';

/** Cases in many orders, with crashes at every moment: what the ordinary suite does for a few. */
export default defineConfig({
  test: {
    include: ['test/explore/**/*.explore.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 900_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
