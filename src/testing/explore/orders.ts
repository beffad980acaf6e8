import { Dpor } from '../../conductor/explore/dpor.ts';
import type { Point, Policy } from '../../conductor/explore/move.ts';
import {
  movesByLane,
  pctPolicy,
  randomPolicy,
  urwPolicy,
  whoeverHasTheBaton,
} from '../../conductor/explore/policies.ts';
import { topLane } from '../../world/recording.ts';
import { type Attempt, noAdversity, type Source } from './attempt.ts';
import type { PerformedCase } from './perform-case.ts';

/** No step is interrupted, in each order of the steps: the first of all is that of the case. */
export function oneAfterAnother(steps: readonly string[]): readonly [Attempt, ...Attempt[]] {
  const attemptOf = (order: readonly string[], seed: number): Attempt => ({
    policy: inOrder(order),
    adversity: noAdversity,
    by: 'one after another',
    seed,
  });
  const [, ...others] = permutations(steps.slice(0, mostSteps));
  return [attemptOf(steps, 0), ...others.map((order, index) => attemptOf(order, index + 1))];
}

/** More steps have more orders than are worth playing. */
const mostSteps = 4;

const permutations = (of: readonly string[]): readonly (readonly string[])[] =>
  of.length <= 1
    ? [of]
    : of.flatMap((first, at) =>
        permutations(of.filter((_, index) => index !== at)).map(rest => [first, ...rest]),
      );

const inOrder = (order: readonly string[]): Policy => ({
  isCalm: true,
  choose: ({ enabled, last, ...rest }: Point) => {
    for (const step of order) {
      const own = enabled.filter(({ lane }) => topLane(lane) === step);
      if (own.length > 0) return whoeverHasTheBaton({ ...rest, enabled: own, last });
    }
    return whoeverHasTheBaton({ ...rest, enabled, last });
  },
});

/** Every order of what conflicts, each once or a few times. */
export class EveryOrder implements Source {
  readonly #dpor = new Dpor();

  get isComplete(): boolean {
    return this.#dpor.isComplete;
  }

  next(): Attempt | undefined {
    const policy = this.#dpor.next();
    return policy && { policy, adversity: noAdversity, by: 'dpor', seed: 0 };
  }

  learn(performed: PerformedCase): void {
    this.#dpor.learn(performed);
  }
}

export type Sampling = 'random' | 'urw' | 'pct';

const depths = [3, 4, 5];

/** Orders by chance, from a seed on. */
export class SomeOrders implements Source {
  readonly #sampling: Sampling;
  #seed: number;
  #moves: ReadonlyMap<string, number>;
  #length: number;

  /** What is known of how long a schedule is comes from a trial. */
  constructor(sampling: Sampling, { seed, trial }: { readonly seed: number; readonly trial: PerformedCase }) {
    this.#sampling = sampling;
    this.#seed = seed;
    this.#moves = movesByLane(trial.trace);
    this.#length = trial.trace.length;
  }

  next(): Attempt {
    const seed = this.#seed++;
    return { ...this.#orderOf(seed), adversity: noAdversity, seed };
  }

  learn({ trace, verdict }: PerformedCase): void {
    if (verdict.kind !== 'cut') this.#length = Math.max(this.#length, trace.length);
  }

  #orderOf(seed: number): Pick<Attempt, 'policy' | 'by'> {
    switch (this.#sampling) {
      case 'random':
        return { policy: randomPolicy(seed), by: 'random' };
      case 'urw':
        return { policy: urwPolicy(seed, this.#moves), by: 'urw' };
      case 'pct': {
        const depth = depths[seed % depths.length] ?? 3;
        return { policy: pctPolicy(seed, { depth, length: this.#length }), by: `pct ${depth}` };
      }
    }
  }
}
