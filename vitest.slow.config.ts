import { defineConfig } from 'vitest/config';

/** Many rounds of what the ordinary suite does a few times: for races that show once in a hundred. */
export default defineConfig({
  test: {
    include: ['test/slow/**/*.slow.ts'],
    testTimeout: 900_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
