/** Returns the median, which is robust against a round in which another process used the disk. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [below = 0, upper = 0] = [sorted[middle - 1], sorted[middle]];
  return sorted.length % 2 === 1 ? upper : (below + upper) / 2;
}

/** Returns the median of each numeric field over the rounds. */
export const medians = <T extends object>(rounds: readonly T[]): T => eachField(rounds, median);

/** Returns the mean of each numeric field over the rounds. */
export const means = <T extends object>(rounds: readonly T[]): T =>
  eachField(rounds, values => values.reduce((total, value) => total + value, 0) / values.length);

function eachField<T extends object>(rounds: readonly T[], of: (values: readonly number[]) => number): T {
  const valuesOf = (field: string) => rounds.map(round => Reflect.get(round, field) as unknown);
  const isNumber = (value: unknown) => typeof value === 'number';
  const fields = Object.keys(rounds[0] ?? {}).flatMap(field => {
    const values = valuesOf(field);
    return isNumber(values[0]) ? [[field, of(values.map(Number))] as const] : [];
  });
  return Object.fromEntries(fields) as T;
}

/**
 * Runs every contender once per round. Each round starts with a different contender, so that disturbances of the machine
 * affect all of them equally. Returns the medians by name.
 */
export function alternate<T extends Readonly<Record<string, object>>>(
  contenders: { readonly [Name in keyof T]: () => T[Name] },
  rounds: number,
): T {
  const all = Object.entries<() => object>(contenders).map(([name, run]) => ({
    name,
    run,
    results: [] as object[],
  }));
  for (let round = 0; round < rounds; round++) {
    const first = round % all.length;
    for (const { run, results } of [...all.slice(first), ...all.slice(0, first)]) results.push(run());
  }
  return Object.fromEntries(all.map(({ name, results }) => [name, medians(results)])) as T;
}
