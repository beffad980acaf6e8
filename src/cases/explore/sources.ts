import { Dpor, type DporOptions } from '../../effects/explore/dpor.ts';
import {
  batonPolicy,
  type Expected,
  expectedFrom,
  oneOf,
  type PolicyName,
  type Random,
  type SamplerName,
  samplers,
  samplersOf,
  scatter,
  seeded,
  whoeverHasTheBaton,
} from '../../effects/explore/policies.ts';
import { clockLane, type Move, type Point, type Policy } from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import { type Adversity, type Attempt, noAdversity, type Source } from './contract.ts';
import { everybody } from './crashes.ts';
import type { PerformedCase } from './perform.ts';

interface SourceOptions extends AdversityOptions {
  readonly policy: PolicyName;
  readonly seed: number;
}

/** Where schedules come from, beside every order and every crash of the recorded one, as far as a trial shows what there is. */
export function sourcesFor(trial: PerformedCase, options: SourceOptions): readonly Source[] {
  const { policy } = options;
  const mishaps = everyMishap(trial, options);
  const stalls = oneStallEach(trial);
  const interruptions = oneStallEach(trial, { isCalm: true });
  return [
    ...(policy === 'auto' ? [stalls, interruptions, stalls] : []),
    ...(mishaps.length > 0 ? [oneMishapEach(mishaps)] : []),
    ...samplersFor(trial, { ...options, mishaps }),
  ];
}

function samplersFor(
  trial: PerformedCase,
  { policy, seed, mishaps }: SourceOptions & { readonly mishaps: readonly Adversity[] },
): readonly Source[] {
  const sampled = policy === 'auto' ? (['urw', 'pct', 'random'] as const) : ([policy] as const);
  return sampled.flatMap(each => {
    if (each === 'dpor') return [];
    const orders = new SomeOrders(each, { seed, trial });
    if (mishaps.length === 0) return [orders];
    return [orders, withMishaps(new SomeOrders(each, { seed: seed + 1_000_000, trial }), mishaps, seed)];
  });
}

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

/** Every order of what conflicts, each once or a few times. The first is one in which nobody is interrupted. */
export class EveryOrder implements Source {
  readonly #dpor: Dpor;

  constructor(options: DporOptions) {
    this.#dpor = new Dpor(options);
  }

  get isComplete(): boolean {
    return this.#dpor.isComplete;
  }

  next(): Attempt | undefined {
    const policy = this.#dpor.next();
    return policy && { policy, adversity: noAdversity, by: 'dpor', seed: 0 };
  }

  learn(performed: PerformedCase, { policy }: Attempt): void {
    this.#dpor.learn(performed, policy);
  }
}

/** While one step stands still, the others make so many moves before time passes once more. */
const movesATick = 6;

/**
 * One step stands still while the others go on for as long as they can: once before each of its moves. Whoever comes back
 * finds that others have gone on without him; unless time stands still, leases have run out meanwhile.
 */
function oneStallEach(
  { trace }: PerformedCase,
  { isCalm = false }: { readonly isCalm?: boolean } = {},
): Source {
  const made = new Map<string, number>();
  const all = trace.map(move => {
    const step = topLane(move.lane);
    const before = made.get(step) ?? 0;
    made.set(step, before + 1);
    return { step, before, weight: weightOf(move) };
  });
  const moments = scatter(all).toSorted((a, b) => b.weight - a.weight);
  let seed = 0;
  return {
    next: () => {
      const moment = moments[seed];
      return (
        moment && {
          policy: { ...stalling(moment), isCalm },
          adversity: noAdversity,
          by: `${isCalm ? 'an interruption' : 'a stall'} of ${moment.step}`,
          seed: seed++,
        }
      );
    },
    learn: () => {},
  };
}

/** What cannot be undone is best done by somebody who was gone for long. */
const weightOf = ({ keys: { writes = [] } }: Move): number =>
  Math.max(0, ...writes.map(key => (key.startsWith('ref:') ? 2 : /^(claim|lock|slot):/.test(key) ? 1 : 0)));

function stalling({
  step,
  before,
}: {
  readonly step: string;
  readonly before: number;
}): Pick<Policy, 'choose'> {
  let made = 0;
  let others = 0;
  let isOver = false;
  const goOn = (point: Point): string => {
    const enabled = unlessEmpty(point.enabled, move => move.lane !== clockLane);
    const lane = whoeverHasTheBaton({ ...point, enabled });
    const move = enabled.find(each => each.lane === lane);
    // In the trial time stood still, so that to look at the clock was no move.
    if (move && topLane(lane) === step && !move.op.startsWith('clock.')) made++;
    return lane;
  };
  return {
    choose: point => {
      if (made < before) {
        const own = point.enabled.filter(({ lane }) => topLane(lane) === step);
        return goOn(own.length > 0 ? { ...point, enabled: own } : point);
      }
      if (isOver) return goOn(point);
      const awake = point.enabled.filter(({ lane }) => topLane(lane) !== step && lane !== clockLane);
      const canTick = point.enabled.some(({ lane }) => lane === clockLane);
      if (canTick && (awake.length === 0 || others % movesATick === 0)) {
        others++;
        return clockLane;
      }
      others++;
      if (awake.length > 0) return whoeverHasTheBaton({ ...point, enabled: awake });
      isOver = true;
      return goOn(point);
    },
  };
}

const unlessEmpty = (moves: readonly Move[], keep: (move: Move) => boolean): readonly Move[] => {
  const kept = moves.filter(keep);
  return kept.length > 0 ? kept : moves;
};

type Sampling = Exclude<PolicyName, 'auto' | 'dpor'>;

/** Orders by chance, from a seed on. */
class SomeOrders implements Source {
  readonly #samplers: readonly SamplerName[];
  #seed: number;
  #expected: Expected;

  /** What is known of how long a schedule is comes from a trial. */
  constructor(sampling: Sampling, { seed, trial }: { readonly seed: number; readonly trial: PerformedCase }) {
    this.#samplers = samplersOf[sampling];
    this.#seed = seed;
    this.#expected = expectedFrom(trial);
  }

  next(): Attempt {
    const seed = this.#seed++;
    const by = this.#samplers[seed % this.#samplers.length] ?? 'random';
    const policy = samplers[by](seed, this.#expected);
    // Every other one without time that passes meanwhile: those are shorter, and most races need no time.
    return { policy: { ...policy, isCalm: seed % 2 === 0 }, by, adversity: noAdversity, seed };
  }

  learn({ trace, verdict }: PerformedCase): void {
    const { length } = this.#expected;
    if (verdict.kind !== 'cut')
      this.#expected = { ...this.#expected, length: Math.max(length, trace.length) };
  }
}

interface AdversityOptions {
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
function oneMishapEach(mishaps: readonly Adversity[]): Source {
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
function withMishaps(orders: Source, mishaps: readonly Adversity[], seed: number): Source {
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
