import { defineConfig } from 'vitest/config';

/** Minutes of workers that are killed at any moment: for what no other suite thought of. */
export default defineConfig({
  test: {
    include: ['test/soak/**/*.soak.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 600_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
