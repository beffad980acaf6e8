/** Target of a case: a minimum or a maximum. */
export interface Target {
  readonly what: string;
  readonly value: number;
  readonly least?: number;
  readonly most?: number;
  /** Factor that the limit is multiplied with before the target counts as missed. */
  readonly tolerance: number;
  readonly show: (value: number) => string;
}

/** A target is missed only beyond its tolerance, because the load of the machine affects every figure. */
export const isMissed = ({ value, least = 0, most = Number.POSITIVE_INFINITY, tolerance }: Target): boolean =>
  value > most * tolerance || value < least * tolerance;

export function describeTarget(target: Target): readonly string[] {
  const { what, value, least, most = 0, show } = target;
  const reached = least === undefined ? value <= most : value >= least;
  const verdict = reached ? 'reached' : isMissed(target) ? '**missed**' : 'within tolerance';
  return [
    what,
    show(value),
    least === undefined ? `at most ${show(most)}` : `at least ${show(least)}`,
    verdict,
  ];
}
