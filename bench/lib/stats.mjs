/** The middle of the values: robust against the one round in which somebody else had the disk. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of each numeric field over the rounds. */
export function medians(rounds) {
  const fields = Object.keys(rounds[0] ?? {}).filter(key => typeof rounds[0][key] === 'number');
  return Object.fromEntries(fields.map(key => [key, median(rounds.map(round => round[key]))]));
}

/** The mean of each numeric field over the rounds. */
export function means(rounds) {
  const fields = Object.keys(rounds[0] ?? {}).filter(key => typeof rounds[0][key] === 'number');
  const sum = key => rounds.reduce((total, round) => total + round[key], 0);
  return Object.fromEntries(fields.map(key => [key, sum(key) / rounds.length]));
}

/**
 * Runs every contender once a round, in turn and each round beginning with another one, so that what disturbs the
 * machine disturbs all of them alike. Gives the medians by name.
 */
export function alternate(contenders, rounds) {
  const names = Object.keys(contenders);
  const results = new Map(names.map(name => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length];
      results.get(name).push(contenders[name]());
    }
  }
  return Object.fromEntries([...results].map(([name, list]) => [name, medians(list)]));
}
