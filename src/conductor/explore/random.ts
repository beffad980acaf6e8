/** Numbers from 0 up to 1, the same ones for the same seed. */
export type Random = () => number;

/** Mulberry32: one 32-bit word of state, which is enough to choose between a few lanes. */
export function seeded(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of them; `of` must not be empty. */
export const oneOf = <T>(of: readonly T[], random: Random): T => of[Math.floor(random() * of.length)] as T;
