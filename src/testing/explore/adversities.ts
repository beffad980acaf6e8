import { everybody } from '../../cases/explore/crashes.ts';
import type { PerformedCase } from '../../cases/explore/perform.ts';
import type { FaultKind } from '../../cases/manifest/manifest.ts';
import { batonPolicy, oneOf, type Random, scatter, seeded } from '../../effects/explore/policies.ts';
import type { Adversity, Source } from './attempt.ts';

export interface AdversityOptions {
  readonly crashes: boolean;
  readonly faults: readonly FaultKind[];
}

/** All that could happen once in a schedule, at every moment at which it could. */
export function everyMishap(
  { entriesOf, chances }: Pick<PerformedCase, 'entriesOf' | 'chances'>,
  { crashes, faults }: AdversityOptions,
): readonly Adversity[] {
  const crashPoints = [...entriesOf].flatMap(([step, entries]) =>
    upTo(entries).map(after => ({ crashes: [{ step, after }], faults: [] })),
  );
  const all = upTo(sum([...entriesOf.values()]));
  const together = all.map(after => ({ crashes: [{ step: everybody, after }], faults: [] }));
  const failures = [...chances].flatMap(([step, of]) =>
    faults.flatMap(kind => upTo(of[kind]).map(nth => ({ crashes: [], faults: [{ kind, step, nth }] }))),
  );
  return [...(crashes ? [...crashPoints, ...together] : []), ...failures];
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Each mishap once, in the order in which no lane is interrupted. If time runs out, moments of all of it were tried. */
export function oneMishapEach(mishaps: readonly Adversity[]): Source {
  let seed = 0;
  const scattered = scatter(mishaps);
  return {
    next: () => {
      const adversity = scattered[seed];
      return (
        adversity && {
          policy: { ...batonPolicy, isCalm: true },
          adversity,
          by: 'no interruption',
          seed: seed++,
        }
      );
    },
    learn: () => {},
  };
}

/** Orders of another source, with one or two mishaps in each. */
export function withMishaps(orders: Source, mishaps: readonly Adversity[], seed: number): Source {
  const random = seeded(seed);
  return {
    next: () => {
      const attempt = orders.next();
      return attempt && { ...attempt, adversity: someOf(mishaps, random) };
    },
    learn: (performed, attempt) => orders.learn(performed, attempt),
  };
}

function someOf(mishaps: readonly Adversity[], random: Random): Adversity {
  const chosen = [oneOf(mishaps, random), ...(random() < twice ? [oneOf(mishaps, random)] : [])];
  return {
    crashes: chosen.flatMap(({ crashes }) => crashes),
    faults: chosen.flatMap(({ faults }) => faults),
  };
}

/** How often there is a second mishap. */
const twice = 0.3;
