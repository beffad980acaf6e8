/** All of them, so that those at the beginning of the list come from everywhere. */
export function scatter<T>(all: readonly T[]): readonly T[] {
  const places = all.map((each, at) => ({ each, place: (at * goldenRatio) % 1 }));
  return places.sort((a, b) => a.place - b.place).map(({ each }) => each);
}

/** Its multiples leave no gap for long. */
const goldenRatio = (Math.sqrt(5) - 1) / 2;
