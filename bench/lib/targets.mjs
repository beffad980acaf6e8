/** A target holds up to its tolerance: other work on the machine moves every figure. */
export const isMissed = ({ value, least, most, tolerance }) =>
  least === undefined ? value > most * tolerance : value < least * tolerance;

export function describeTarget(target) {
  const { what, value, least, most, show } = target;
  const reached = least === undefined ? value <= most : value >= least;
  const verdict = reached ? 'reached' : isMissed(target) ? '**missed**' : 'within tolerance';
  return [
    what,
    show(value),
    least === undefined ? `at most ${show(most)}` : `at least ${show(least)}`,
    verdict,
  ];
}
