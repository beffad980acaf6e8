import { type Coverage, CoverageCounter } from './coverage.ts';
import { Dpor } from './dpor.ts';
import {
  expectedFrom,
  nonPreemptivePolicy,
  type PolicyName,
  type SamplerName,
  samplers,
  samplersOf,
} from './policies.ts';
import type { Move, Perform, Performed, Point, Policy } from './schedule.ts';

interface SearchOptions {
  /** Defaults to `auto`. */
  readonly policy?: PolicyName;
  readonly seed?: number;
  /** Maximum number of schedules. Defaults to 1,000 if `forMs` is not set. */
  readonly schedules?: number;
  /** Time limit. Defaults to none. */
  readonly forMs?: number;
  readonly now?: () => number;
  /** Whether there are crashes or faults, which calm schedules never contain. */
  readonly hasOutside?: boolean;
  /** Called after each schedule. */
  readonly onSchedule?: (progress: SearchProgress, performed: Performed) => void;
}

interface SearchProgress {
  /** Number of schedules, without those that were cut short because an equivalent one had been seen. */
  readonly schedules: number;
  readonly cut: number;
  readonly inconclusive: number;
  readonly entries: number;
  readonly coverage: Coverage;
}

export interface FoundFailure {
  readonly performed: Performed;
  /** Policy that found the failure: `dpor`, `baton` or a sampler. */
  readonly policy: 'dpor' | 'baton' | SamplerName;
  /** Seed of this schedule, if a sampler found it. */
  readonly seed: number | undefined;
  readonly isCalm: boolean;
}

interface SearchResult extends SearchProgress {
  /** Whether all interleavings were seen in which time advances only when every lane waits. */
  readonly isComplete: boolean;
  /** Whether a lane sleeps, so that there are schedules that are not calm. */
  readonly usesTime: boolean;
  readonly failure?: FoundFailure;
}

/** Share of the budget for the systematic search of the `auto` policy. The rest is sampled. */
const systematicShare = 0.5;
const defaultSchedules = 1000;

/** Runs schedules until one fails, all have been seen, or the budget is used up. */
export async function search(perform: Perform, options: SearchOptions = {}): Promise<SearchResult> {
  const searching = new Search(perform, options);
  await searching.run();
  return searching.result;
}

class Search {
  readonly #perform: Perform;
  readonly #options: SearchOptions;
  readonly #budget: SearchBudget;
  readonly #count = new CoverageCounter();
  readonly #dpor = new Dpor();
  #schedules = 0;
  #cut = 0;
  #inconclusive = 0;
  #entries = 0;
  #usesTime = false;
  #failure: FoundFailure | undefined;

  constructor(perform: Perform, options: SearchOptions) {
    this.#perform = perform;
    this.#options = options;
    this.#budget = new SearchBudget(options);
  }

  get result(): SearchResult {
    return {
      ...this.#progress,
      isComplete: this.#dpor.isComplete && this.#inconclusive === 0 && !this.#failure,
      usesTime: this.#usesTime,
      ...(this.#failure ? { failure: this.#failure } : {}),
    };
  }

  get #progress(): SearchProgress {
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
      await this.#searchSystematically(policy === 'dpor' ? 1 : systematicShare);
      const isAllThereIs = this.#dpor.isComplete && !this.#usesTime && !hasOutside;
      if (this.#failure || isAllThereIs) return;
    }
    await this.#sample(samplersOf[policy]);
  }

  async #searchSystematically(share: number): Promise<void> {
    while (!this.#failure && this.#budget.isLeft(this.#schedules + this.#cut, share)) {
      const policy = this.#dpor.next();
      if (!policy) return;
      this.#dpor.learn(await this.#try(policy, { policy: 'dpor', seed: undefined }), policy);
    }
  }

  async #sample(names: readonly SamplerName[]): Promise<void> {
    if (names.length === 0) return;
    const trial = await this.#try(nonPreemptivePolicy, { policy: 'baton', seed: undefined });
    const expected = expectedFrom(trial);
    const { seed: firstSeed = 1 } = this.#options;
    for (let turn = 0; !this.#failure && this.#budget.isLeft(this.#schedules + this.#cut, 1); turn++) {
      const name = names[turn % names.length] ?? 'random';
      const seed = firstSeed + Math.floor(turn / names.length);
      await this.#try(samplers[name](seed, expected), { policy: name, seed });
    }
  }

  async #try(policy: Policy, by: Pick<FoundFailure, 'policy' | 'seed'>): Promise<Performed> {
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

class SearchBudget {
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

  /** Whether a share of the budget, from 0 to 1, is not used up. */
  isLeft(schedules: number, share: number): boolean {
    return schedules < this.#schedules * share && this.#now() - this.#start < this.#forMs * share;
  }
}

/** Kind of failure of a schedule with two different outcomes. */
export const notDeterministic = 'not deterministic';

/**
 * Runs every schedule twice, and compares the enabled lanes before each move and the outcome. A difference is a failure:
 * the program depends on something other than effects. `endOf` adds details of the outcome.
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
        points.push(pointText(point));
        return policy.choose(point);
      },
    });
    if (first.verdict.kind === 'cut') return first;
    const following = new SecondRun(first.trace, points);
    const second = await perform({ ...policy, choose: point => following.choose(point) });
    const difference = following.difference ?? differentEnd(ended(first, endOf), ended(second, endOf));
    return difference === undefined
      ? first
      : { ...first, verdict: { kind: 'failed', what: notDeterministic, message: difference } };
  };

const pointText = ({ enabled, waiting }: Point): string =>
  `${listed(enabled)}${waiting.length > 0 ? ` (waiting: ${listed(waiting)})` : ''}`;

const listed = (moves: readonly Move[]): string => moves.map(({ lane, op }) => `${lane} ${op}`).join(', ');

/** Follows the trace of the first run, up to the first difference. */
class SecondRun {
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
    const now = pointText(point);
    const lane = this.#trace[n]?.lane;
    if (before === now && lane !== undefined) return lane;
    this.difference = `before move ${n + 1} the first run ${before === undefined ? 'had ended' : `could continue with ${before}`}; the second with ${now}`;
    throw new Error(this.difference);
  }
}

function ended<Known extends Performed>(performed: Known, endOf: (performed: Known) => string): string {
  const { verdict, trace } = performed;
  const outcome = verdict.kind === 'failed' ? verdict.what : verdict.kind;
  const moves = trace.length === 1 ? '1 move' : `${trace.length} moves`;
  return `${outcome} after ${moves}${endOf(performed)}`;
}

const differentEnd = (first: string, second: string): string | undefined =>
  first === second ? undefined : `the first run ended as ${first}; the second as ${second}`;
