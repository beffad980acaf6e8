/** Seed of a random test. `TEST_SEED` repeats a run. */
export const seedOf = (usual: number): number => Number(process.env['TEST_SEED'] ?? usual);

/** Returns a mulberry32 generator of numbers from 0 to 1. */
export function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
