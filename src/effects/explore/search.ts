import { ClassCount, type Coverage } from './coverage.ts';
import { Dpor } from './dpor.ts';
import {
  batonPolicy,
  expectedFrom,
  type PolicyName,
  type SamplerName,
  samplers,
  samplersOf,
} from './policies.ts';
import type { Move, Perform, Performed, Point, Policy } from './schedule.ts';

interface SearchOptions {
  /** `auto` unless it is said. */
  readonly policy?: PolicyName;
  readonly seed?: number;
  /** How many schedules are performed at the most. */
  readonly schedules?: number;
  /** For how long. Without a number of schedules and a time, 1,000 schedules. */
  readonly forMs?: number;
  readonly now?: () => number;
  /** Whether something may come from the outside, which no calm schedule shows: crashes, faults. */
  readonly hasOutside?: boolean;
  /** Told after each schedule. */
  readonly onSchedule?: (progress: Progress, performed: Performed) => void;
}

interface Progress {
  /** Without those that were cut short because they had been seen in another order. */
  readonly schedules: number;
  readonly cut: number;
  readonly inconclusive: number;
  readonly entries: number;
  readonly coverage: Coverage;
}

export interface Found {
  readonly performed: Performed;
  /** Which policy found it: `dpor`, `baton` or a sampler. */
  readonly policy: 'dpor' | 'baton' | SamplerName;
  /** Of a sampler: the one of this schedule. */
  readonly seed: number | undefined;
  readonly isCalm: boolean;
}

interface SearchResult extends Progress {
  /** Every order was seen in which lanes can go on while time stands still unless all of them wait. */
  readonly isComplete: boolean;
  /** Somebody sleeps or is asked to by the clock, so that there are schedules that are not calm. */
  readonly usesTime: boolean;
  readonly failure?: Found;
}

/** Of a portfolio, the part that is searched in order before the rest is sampled. */
const shareInOrder = 0.5;
const defaultSchedules = 1000;

/** Performs schedules until one fails, all have been seen, or the budget is used up. */
export async function search(perform: Perform, options: SearchOptions = {}): Promise<SearchResult> {
  const searching = new Search(perform, options);
  await searching.run();
  return searching.result;
}

class Search {
  readonly #perform: Perform;
  readonly #options: SearchOptions;
  readonly #budget: Budget;
  readonly #count = new ClassCount();
  readonly #dpor = new Dpor();
  #schedules = 0;
  #cut = 0;
  #inconclusive = 0;
  #entries = 0;
  #usesTime = false;
  #failure: Found | undefined;

  constructor(perform: Perform, options: SearchOptions) {
    this.#perform = perform;
    this.#options = options;
    this.#budget = new Budget(options);
  }

  get result(): SearchResult {
    return {
      ...this.#progress,
      isComplete: this.#dpor.isComplete && this.#inconclusive === 0 && !this.#failure,
      usesTime: this.#usesTime,
      ...(this.#failure ? { failure: this.#failure } : {}),
    };
  }

  get #progress(): Progress {
    return {
      schedules: this.#schedules,
      cut: this.#cut,
      inconclusive: this.#inconclusive,
      entries: this.#entries,
      coverage: this.#count.coverage,
    };
  }

  async run(): Promise<void> {
    const { policy = 'auto', hasOutside = false } = this.#options;
    if (policy === 'auto' || policy === 'dpor') {
      await this.#searchInOrder(policy === 'dpor' ? 1 : shareInOrder);
      const isAllThereIs = this.#dpor.isComplete && !this.#usesTime && !hasOutside;
      if (this.#failure || isAllThereIs) return;
    }
    await this.#sample(samplersOf[policy]);
  }

  async #searchInOrder(share: number): Promise<void> {
    while (!this.#failure && this.#budget.isLeft(this.#schedules + this.#cut, share)) {
      const policy = this.#dpor.next();
      if (!policy) return;
      this.#dpor.learn(await this.#try(policy, { policy: 'dpor', seed: undefined }), policy);
    }
  }

  async #sample(names: readonly SamplerName[]): Promise<void> {
    if (names.length === 0) return;
    const trial = await this.#try(batonPolicy, { policy: 'baton', seed: undefined });
    const expected = expectedFrom(trial);
    const { seed: firstSeed = 1 } = this.#options;
    for (let turn = 0; !this.#failure && this.#budget.isLeft(this.#schedules + this.#cut, 1); turn++) {
      const name = names[turn % names.length] ?? 'random';
      const seed = firstSeed + Math.floor(turn / names.length);
      await this.#try(samplers[name](seed, expected), { policy: name, seed });
    }
  }

  async #try(policy: Policy, by: Pick<Found, 'policy' | 'seed'>): Promise<Performed> {
    const performed = await this.#perform(this.#usesTime ? policy : this.#lookingForTime(policy));
    const { verdict, trace, entries } = performed;
    this.#entries += entries;
    if (verdict.kind === 'cut') this.#cut++;
    else {
      this.#schedules++;
      this.#count.see(trace);
    }
    if (verdict.kind === 'inconclusive') this.#inconclusive++;
    if (verdict.kind === 'failed') this.#failure = { performed, ...by, isCalm: policy.isCalm ?? false };
    this.#options.onSchedule?.(this.#progress, performed);
    return performed;
  }

  #lookingForTime(policy: Policy): Policy {
    const choose = (point: Point) => {
      this.#usesTime ||= point.waiting.some(isSleep) || point.enabled.some(isSleep);
      return policy.choose(point);
    };
    return policy.isCalm === undefined ? { choose } : { choose, isCalm: policy.isCalm };
  }
}

const isSleep = ({ op }: { readonly op: string }): boolean => op === 'clock.sleep.end';

class Budget {
  readonly #schedules: number;
  readonly #forMs: number;
  readonly #now: () => number;
  readonly #start: number;

  constructor({ schedules, forMs, now = () => performance.now() }: SearchOptions) {
    const { POSITIVE_INFINITY: endless } = Number;
    this.#schedules = schedules ?? (forMs === undefined ? defaultSchedules : endless);
    this.#forMs = forMs ?? endless;
    this.#now = now;
    this.#start = now();
  }

  /** Whether there is something left of a share of it, from 0 to 1. */
  isLeft(schedules: number, share: number): boolean {
    return schedules < this.#schedules * share && this.#now() - this.#start < this.#forMs * share;
  }
}

/** A schedule that did not come to the same when it was performed once more. */
export const notDeterministic = 'not deterministic';

/**
 * Performs every schedule twice, and compares who could go on before each move, and how it ended. What differs depends on
 * something that is no effect, and makes of the schedule a failure. `endOf` says more of how one ended, if more is known.
 */
export const twice =
  <Known extends Performed>(
    perform: (policy: Policy) => Promise<Known>,
    endOf: (performed: Known) => string = () => '',
  ): ((policy: Policy) => Promise<Known>) =>
  async policy => {
    const points: string[] = [];
    const first = await perform({
      ...policy,
      choose: point => {
        points.push(standing(point));
        return policy.choose(point);
      },
    });
    if (first.verdict.kind === 'cut') return first;
    const following = new Following(first.trace, points);
    const second = await perform({ ...policy, choose: point => following.choose(point) });
    const difference = following.difference ?? differentEnd(ended(first, endOf), ended(second, endOf));
    return difference === undefined
      ? first
      : { ...first, verdict: { kind: 'failed', what: notDeterministic, message: difference } };
  };

const standing = ({ enabled, waiting }: Point): string =>
  `${listed(enabled)}${waiting.length > 0 ? ` (${listed(waiting)} cannot)` : ''}`;

const listed = (moves: readonly Move[]): string => moves.map(({ lane, op }) => `${lane} ${op}`).join(', ');

class Following {
  readonly #trace: readonly Move[];
  readonly #points: readonly string[];
  difference: string | undefined;

  constructor(trace: readonly Move[], points: readonly string[]) {
    this.#trace = trace;
    this.#points = points;
  }

  choose(point: Point): string {
    const { n } = point;
    const before = this.#points[n];
    const now = standing(point);
    const lane = this.#trace[n]?.lane;
    if (before === now && lane !== undefined) return lane;
    this.difference = `before move ${n + 1} these could go on: ${before ?? 'nobody, it had ended'}; the second time: ${now}`;
    throw new Error(this.difference);
  }
}

function ended<Known extends Performed>(performed: Known, endOf: (performed: Known) => string): string {
  const { verdict, trace } = performed;
  const words = verdict.kind === 'failed' ? verdict.what : verdict.kind;
  return `${words} after ${trace.length} moves${endOf(performed)}`;
}

const differentEnd = (first: string, second: string): string | undefined =>
  first === second ? undefined : `it ended in two ways: ${first}; the second time: ${second}`;
