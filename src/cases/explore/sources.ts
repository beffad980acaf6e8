import {
  clockLane,
  continueLast,
  Dpor,
  type DporOptions,
  type Expected,
  expectedFrom,
  type Move,
  nonPreemptivePolicy,
  oneOf,
  type Point,
  type Policy,
  type PolicyName,
  type Random,
  type SamplerName,
  samplers,
  samplersOf,
  scatter,
  seeded,
} from '../../effects/explore/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import { type Faults, noFaults, type ScheduleAttempt, type ScheduleSource } from './contract.ts';
import { allSteps } from './crashes.ts';
import type { PerformedCase } from './perform.ts';

interface SourceOptions extends FaultOptions {
  readonly policy: PolicyName;
  readonly seed: number;
}

/** Returns the sources of schedules besides `EveryOrder` and `CrashPoints`. A trial shows which moves and faults exist. */
export function sourcesFor(trial: PerformedCase, options: SourceOptions): readonly ScheduleSource[] {
  const { policy } = options;
  const faultSets = everyFault(trial, options);
  const stalls = oneStallEach(trial);
  const interruptions = oneStallEach(trial, { isCalm: true });
  return [
    ...(policy === 'auto' ? [stalls, interruptions, stalls] : []),
    ...(faultSets.length > 0 ? [oneFaultEach(faultSets)] : []),
    ...samplersFor(trial, { ...options, faultSets }),
  ];
}

function samplersFor(
  trial: PerformedCase,
  { policy, seed, faultSets }: SourceOptions & { readonly faultSets: readonly Faults[] },
): readonly ScheduleSource[] {
  const sampled = policy === 'auto' ? (['urw', 'pct', 'random'] as const) : ([policy] as const);
  return sampled.flatMap(each => {
    if (each === 'dpor') return [];
    const orders = new SomeOrders(each, { seed, trial });
    if (faultSets.length === 0) return [orders];
    return [orders, withFaults(new SomeOrders(each, { seed: seed + 1_000_000, trial }), faultSets, seed)];
  });
}

/** Returns the sequential schedules, in every order of the commands. The first has the order of the case. */
export function oneAfterAnother(steps: readonly string[]): readonly [ScheduleAttempt, ...ScheduleAttempt[]] {
  const attemptOf = (order: readonly string[], seed: number): ScheduleAttempt => ({
    policy: inOrder(order),
    adversity: noFaults,
    by: 'sequential order',
    seed,
  });
  const [, ...others] = permutations(steps.slice(0, mostSteps));
  return [attemptOf(steps, 0), ...others.map((order, index) => attemptOf(order, index + 1))];
}

/** Maximum number of commands to permute: more have more orders than are worth playing. */
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
      if (own.length > 0) return continueLast({ ...rest, enabled: own, last });
    }
    return continueLast({ ...rest, enabled, last });
  },
});

/** Supplies every order of conflicting moves, each at least once. The first schedule has no preemption. */
export class EveryOrder implements ScheduleSource {
  readonly #dpor: Dpor;

  constructor(options: DporOptions) {
    this.#dpor = new Dpor(options);
  }

  get isComplete(): boolean {
    return this.#dpor.isComplete;
  }

  next(): ScheduleAttempt | undefined {
    const policy = this.#dpor.next();
    return policy && { policy, adversity: noFaults, by: 'dpor', seed: 0 };
  }

  learn(performed: PerformedCase, { policy }: ScheduleAttempt): void {
    this.#dpor.learn(performed, policy);
  }
}

/** Number of moves of other commands between two ticks of the clock, while one command is stalled. */
const movesATick = 6;

/**
 * Supplies schedules in which one command is stalled before one of its moves until the others cannot continue. When it
 * wakes up, others have taken over its work. Unless `isCalm`, its leases have expired as well.
 */
function oneStallEach(
  { trace }: PerformedCase,
  { isCalm = false }: { readonly isCalm?: boolean } = {},
): ScheduleSource {
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
          adversity: noFaults,
          by: `${isCalm ? 'a preemption' : 'a stall'} of ${moment.step}`,
          seed: seed++,
        }
      );
    },
    learn: () => {},
  };
}

/** Stalls before irreversible moves come first: they reveal the most when the command is out of date. */
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
  const proceed = (point: Point): string => {
    const enabled = unlessEmpty(point.enabled, move => move.lane !== clockLane);
    const lane = continueLast({ ...point, enabled });
    const move = enabled.find(each => each.lane === lane);
    // Time did not pass in the trial, so reading the clock was not a move there.
    if (move && topLane(lane) === step && !move.op.startsWith('clock.')) made++;
    return lane;
  };
  return {
    choose: point => {
      if (made < before) {
        const own = point.enabled.filter(({ lane }) => topLane(lane) === step);
        return proceed(own.length > 0 ? { ...point, enabled: own } : point);
      }
      if (isOver) return proceed(point);
      const awake = point.enabled.filter(({ lane }) => topLane(lane) !== step && lane !== clockLane);
      const canTick = point.enabled.some(({ lane }) => lane === clockLane);
      if (canTick && (awake.length === 0 || others % movesATick === 0)) {
        others++;
        return clockLane;
      }
      others++;
      if (awake.length > 0) return continueLast({ ...point, enabled: awake });
      isOver = true;
      return proceed(point);
    },
  };
}

const unlessEmpty = (moves: readonly Move[], keep: (move: Move) => boolean): readonly Move[] => {
  const kept = moves.filter(keep);
  return kept.length > 0 ? kept : moves;
};

type Sampling = Exclude<PolicyName, 'auto' | 'dpor'>;

/** Supplies random schedules with consecutive seeds. */
class SomeOrders implements ScheduleSource {
  readonly #samplers: readonly SamplerName[];
  #seed: number;
  #expected: Expected;

  /** `trial` gives a first estimate of the length of a schedule. */
  constructor(sampling: Sampling, { seed, trial }: { readonly seed: number; readonly trial: PerformedCase }) {
    this.#samplers = samplersOf[sampling];
    this.#seed = seed;
    this.#expected = expectedFrom(trial);
  }

  next(): ScheduleAttempt {
    const seed = this.#seed++;
    const by = this.#samplers[seed % this.#samplers.length] ?? 'random';
    const policy = samplers[by](seed, this.#expected);
    // In half of the schedules, time passes only while all lanes wait: these are shorter, and most races need no
    // time.
    return { policy: { ...policy, isCalm: seed % 2 === 0 }, by, adversity: noFaults, seed };
  }

  learn({ trace, verdict }: PerformedCase): void {
    const { length } = this.#expected;
    if (verdict.kind !== 'cut')
      this.#expected = { ...this.#expected, length: Math.max(length, trace.length) };
  }
}

interface FaultOptions {
  readonly crashes: boolean;
  readonly faults: readonly FaultKind[];
}

/** Returns every single crash or fault, at every point at which it can strike. */
export function everyFault(
  { entriesOf, faultPoints }: Pick<PerformedCase, 'entriesOf' | 'faultPoints'>,
  { crashes, faults }: FaultOptions,
): readonly Faults[] {
  const crashPoints = [...entriesOf].flatMap(([step, entries]) =>
    upTo(entries).map(after => ({ crashes: [{ step, after }], faults: [] })),
  );
  const all = upTo(sum([...entriesOf.values()]));
  const together = all.map(after => ({ crashes: [{ step: allSteps, after }], faults: [] }));
  const failures = [...faultPoints].flatMap(([step, of]) =>
    faults.flatMap(kind => upTo(of[kind]).map(nth => ({ crashes: [], faults: [{ kind, step, nth }] }))),
  );
  return [...(crashes ? [...crashPoints, ...together] : []), ...failures];
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/**
 * Supplies each fault once, in the schedule without preemption. The faults are scattered, so that an exploration that
 * is cut short has tried points from the whole schedule.
 */
function oneFaultEach(faultSets: readonly Faults[]): ScheduleSource {
  let seed = 0;
  const scattered = scatter(faultSets);
  return {
    next: () => {
      const adversity = scattered[seed];
      return (
        adversity && {
          policy: { ...nonPreemptivePolicy, isCalm: true },
          adversity,
          by: 'no preemption',
          seed: seed++,
        }
      );
    },
    learn: () => {},
  };
}

/** Supplies the schedules of another source with one or two faults in each. */
function withFaults(orders: ScheduleSource, faultSets: readonly Faults[], seed: number): ScheduleSource {
  const random = seeded(seed);
  return {
    next: () => {
      const attempt = orders.next();
      return attempt && { ...attempt, adversity: someOf(faultSets, random) };
    },
    learn: (performed, attempt) => orders.learn(performed, attempt),
  };
}

function someOf(faultSets: readonly Faults[], random: Random): Faults {
  const chosen = [oneOf(faultSets, random), ...(random() < twice ? [oneOf(faultSets, random)] : [])];
  return {
    crashes: chosen.flatMap(({ crashes }) => crashes),
    faults: chosen.flatMap(({ faults }) => faults),
  };
}

/** Probability of a second fault. */
const twice = 0.3;
