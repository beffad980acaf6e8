/** Returns the median, which is robust against a round in which another process used the disk. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [below = 0, upper = 0] = [sorted[middle - 1], sorted[middle]];
  return sorted.length % 2 === 1 ? upper : (below + upper) / 2;
}

/** Measurements of one round, by name. */
export type Figures = Readonly<Record<string, number>>;

/** Returns the median of each figure over the rounds. */
export const medians = <T extends Figures>(rounds: readonly T[]): T => eachFigure(rounds, median);

/** Returns the mean of each figure over the rounds. */
export const means = <T extends Figures>(rounds: readonly T[]): T =>
  eachFigure(rounds, values => values.reduce((total, value) => total + value, 0) / values.length);

function eachFigure<T extends Figures>(rounds: readonly T[], of: (values: readonly number[]) => number): T {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(names.map(name => [name, of(rounds.map(round => round[name] ?? 0))])) as T;
}

/**
 * Measures every contender once per round. Each round starts with a different contender, so that disturbances of the
 * machine affect all of them equally. Returns the contenders with the medians of their figures.
 */
export function alternateAll<Contender, T extends Figures>(
  contenders: readonly Contender[],
  measure: (contender: Contender) => T,
  rounds: number,
): readonly (readonly [Contender, T])[] {
  const all = contenders.map(contender => ({ contender, results: [] as T[] }));
  for (let round = 0; round < rounds; round++) {
    const first = round % all.length;
    for (const { contender, results } of [...all.slice(first), ...all.slice(0, first)])
      results.push(measure(contender));
  }
  return all.map(({ contender, results }) => [contender, medians(results)]);
}

type Contenders = Readonly<Record<string, () => Figures>>;
type FiguresOf<Run> = Run extends () => infer T ? T : never;

/** Like `alternateAll`, with contenders and results by name. */
export function alternate<C extends Contenders>(
  contenders: C,
  rounds: number,
): { readonly [Name in keyof C]: FiguresOf<C[Name]> } {
  const measured = alternateAll(Object.entries(contenders), ([, run]) => run(), rounds);
  return Object.fromEntries(measured.map(([[name], figures]) => [name, figures])) as {
    [Name in keyof C]: FiguresOf<C[Name]>;
  };
}
