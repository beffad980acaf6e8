import { CoverageCounter, type Policy, twice } from '../../effects/explore/index.ts';
import type { Backend } from './backends.ts';
import {
  type CaseExploreOptions,
  type EndedBy,
  type Exploration,
  type ExplorationProgress,
  type Failure,
  failureOf,
  type InconclusiveCount,
  isMost,
  type ScheduleAttempt,
  type ScheduleSource,
} from './contract.ts';
import { type CrashCoverage, CrashPoints } from './crash-points.ts';
import { type OutcomeForms, SequentialOutcomes, SequentialSource } from './outcomes.ts';
import { type PerformedCase, performCase } from './perform.ts';
import { symmetricSteps } from './prepare.ts';
import { EveryOrder, oneAfterAnother, sourcesFor } from './sources.ts';

/**
 * Maximum number of schedules played in parallel. It is the same on every machine, so that every machine plays the same
 * schedules. With more, they would all wait for the single thread that does everything except git.
 */
const mostAtOnce = 3;

/** The backends of one case. Each can play a schedule in parallel with the others. */
export class Backends {
  readonly #first: Backend;
  readonly #all: Promise<Backend>[];
  readonly #free: Promise<Backend>[];

  constructor(first: Backend) {
    this.#first = first;
    this.#all = [Promise.resolve(first)];
    this.#free = [...this.#all];
  }

  /** Starts preparing the other backends. */
  prepare(): void {
    while (this.#first.another && this.#all.length < mostAtOnce) {
      const other = this.#first.another();
      // The schedule that takes this backend gets the error.
      other.catch(() => {});
      this.#all.push(other);
      this.#free.push(other);
    }
  }

  /** Takes a free backend. The first one goes first, because it is ready. */
  take(): Promise<Backend> | undefined {
    return this.#free.shift();
  }

  giveBack(backend: Backend): void {
    this.#free.unshift(Promise.resolve(backend));
  }

  /** Waits until all backends are prepared or have failed. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#all);
  }
}

interface PlayOptions<T> {
  /** Returns the next schedule; `undefined` if there is none until the running ones have been learned from. */
  next(underWay: readonly T[]): T | undefined;
  perform(what: T, backend: Backend): Promise<PerformedCase>;
  learn(what: T, performed: PerformedCase): void;
}

interface RunningAttempt<T> {
  readonly what: T;
  readonly backend: Backend;
  readonly performing: Promise<PerformedCase>;
}

/**
 * Plays as many schedules in parallel as there are backends. Learns from them in the order in which they began, so that
 * the choice of the next schedules does not depend on timing.
 */
export async function playAtOnce<T>(
  backends: Backends,
  { next, perform, learn }: PlayOptions<T>,
): Promise<void> {
  const underWay: RunningAttempt<T>[] = [];
  const begin = async (): Promise<boolean> => {
    const backend = await backends.take();
    const what = backend && next(underWay.map(each => each.what));
    if (backend && what === undefined) backends.giveBack(backend);
    if (!backend || what === undefined) return false;
    const performing = perform(what, backend);
    // The loop below awaits it later; until then, a failure must not count as unhandled.
    performing.catch(() => {});
    underWay.push({ what, backend, performing });
    return true;
  };
  try {
    for (;;) {
      if (await begin()) continue;
      const first = underWay[0];
      if (!first) return;
      learn(first.what, await first.performing);
      underWay.shift();
      // The backend is only free after learning: otherwise timing would decide how many schedules begin before that.
      backends.giveBack(first.backend);
    }
  } finally {
    await Promise.allSettled([...underWay.map(({ performing }) => performing), backends.settle()]);
  }
}

/** Minimum number of schedules for which preparing more backends pays off. */
const fewestAtOnce = 5;

/** A schedule to play, and the source that learns from it. */
interface PlannedSchedule {
  readonly source: ScheduleSource;
  readonly attempt: ScheduleAttempt;
}

/** Number of schedules to play before giving up because most are inconclusive. */
const fewestOthers = 50;

const formOf = ({ forms }: PerformedCase): string => (forms ? `: ${forms.all}` : '');

/** Explores a case on one backend. Exploring may be paused and continued. */
export class CaseExplorer {
  readonly #backend: Backend;
  readonly #backends: Backends;
  readonly #options: CaseExploreOptions;
  readonly #classes = new CoverageCounter();
  readonly #outcomes: SequentialOutcomes;
  /** Sequential schedules. Their outcomes are the allowed ones. */
  readonly #oneAfterAnother: SequentialSource;
  readonly #symmetric: readonly (readonly string[])[];
  readonly #everyOrder: EveryOrder;
  #goBegan = 0;
  #goEnds = Number.POSITIVE_INFINITY;
  #spentMs = 0;
  /** The commands of the case in their order, without preemption. Other schedules are derived from this one. */
  #trial: PerformedCase | undefined;
  #crashPoints: CrashPoints | undefined;
  #sources: ScheduleSource[] | undefined;
  #turn = 0;
  #schedules = 0;
  #entries = 0;
  #inconclusive = 0;
  #counterfactual = 0;
  #others: InconclusiveCount = { inconclusive: 0, schedules: 0 };
  #doubt: string | undefined;
  #failure: Failure | undefined;

  constructor(backend: Backend, options: CaseExploreOptions) {
    this.#backend = backend;
    this.#backends = new Backends(backend);
    this.#options = options;
    const { manifest } = backend.prepared;
    this.#outcomes = new SequentialOutcomes({ acceptsAny: manifest.explore?.anyOutcome });
    this.#symmetric = symmetricSteps(manifest);
    const [first, ...others] = this.#orders();
    this.#everyOrder = new EveryOrder({ symmetric: this.#symmetric, first: first.policy });
    const trial = { ...first, ...this.#everyOrder.next(), by: first.by };
    this.#oneAfterAnother = new SequentialSource([trial, ...others], this.#outcomes);
  }

  get kind(): Backend['kind'] {
    return this.#backend.kind;
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Whether nothing is left to play, no matter how much time there is. */
  get isSpent(): boolean {
    return this.#limit !== undefined || this.#sources?.length === 0;
  }

  /** Reason to stop other than the time limit. */
  get #limit(): Exclude<EndedBy, 'time'> | undefined {
    const { schedules, interrupt } = this.#options;
    if (this.#failure) return 'failure';
    if (interrupt?.aborted) return 'interrupt';
    return this.#schedules >= schedules ? 'schedules' : undefined;
  }

  get result(): Exploration {
    return {
      ...this.#progress(),
      // An inconclusive schedule proves nothing.
      isComplete: this.#everyOrder.isComplete && this.#inconclusive === 0 && !this.#failure,
      alike: this.#symmetric,
      inconclusive: this.#inconclusive,
      doubt: this.#doubt,
      counterfactual: this.#counterfactual,
      isComparedWithOrders: this.#outcomes.areKnown || !this.#outcomes.areClosed,
      givenUp: this.hasGivenUp ? this.#others : undefined,
      endedBy: this.#sources?.length === 0 ? undefined : (this.#limit ?? 'time'),
      failure: this.#failure,
    };
  }

  /** Plays the first sequential schedule, which shows how long a schedule takes. */
  begin(): Promise<void> {
    return this.#timed(async () => {
      const source = this.#oneAfterAnother;
      const attempt = this.#trial ? undefined : source.next();
      if (attempt) this.#learn({ source, attempt }, await this.#perform(attempt));
    });
  }

  /** Explores for `forMs`, continuing where the last call stopped. */
  explore(forMs: number): Promise<void> {
    return this.#timed(async () => {
      this.#goEnds = performance.now() + forMs;
      await this.#takeTurns(trial => (this.#sources ??= this.#sourcesFor(trial)));
    });
  }

  /** Plays only the crash points of the recorded schedule. */
  tryCrashPoints(forMs: number): Promise<void> {
    return this.#timed(async () => {
      this.#goEnds = performance.now() + forMs;
      await this.#takeTurns(trial => [this.#crashPointsOf(trial)]);
    });
  }

  /** Plays one schedule outside of the search, with the same checks. */
  async retry(
    attempt: Pick<ScheduleAttempt, 'policy' | 'adversity'>,
    { comparesOrders = true }: { readonly comparesOrders?: boolean } = {},
  ): Promise<PerformedCase> {
    if (comparesOrders && !this.#outcomes.areClosed) await this.#learnOrders();
    return this.#judge(attempt, await this.#perform(attempt));
  }

  /** Learns the outcomes of the sequential schedules without reporting their failures. */
  async #learnOrders(): Promise<void> {
    for (const attempt of this.#orders()) this.#outcomes.learn(await this.#perform(attempt));
    this.#outcomes.close();
  }

  #orders(): readonly [ScheduleAttempt, ...ScheduleAttempt[]] {
    return oneAfterAnother(this.#backend.prepared.manifest.steps.map(({ name }) => name));
  }

  async #timed(go: () => Promise<void>): Promise<void> {
    this.#goBegan = performance.now();
    await go();
    this.#spentMs += performance.now() - this.#goBegan;
    this.#goBegan = 0;
  }

  #sourcesFor(trial: PerformedCase): ScheduleSource[] {
    const { crashes, policy } = this.#options;
    const orders = policy === 'auto' || policy === 'dpor' ? [this.#everyOrder] : [];
    const crashPoints = crashes ? [this.#crashPointsOf(trial)] : [];
    return [...orders, ...crashPoints, ...sourcesFor(trial, this.#options)];
  }

  #crashPointsOf(trial: PerformedCase): CrashPoints {
    this.#crashPoints ??= new CrashPoints(this.#backend.prepared, trial);
    return this.#crashPoints;
  }

  /** Takes one schedule of each source in turn, because a bug that one source finds late, another may find early. */
  async #takeTurns(sourcesFor: (trial: PerformedCase) => ScheduleSource[]): Promise<void> {
    if (this.#options.schedules >= fewestAtOnce) this.#backends.prepare();
    let left: ScheduleSource[] | undefined;
    await playAtOnce<PlannedSchedule>(this.#backends, {
      next: underWay => {
        left ??= this.#trial && sourcesFor(this.#trial);
        return this.#next(left, underWay);
      },
      perform: ({ attempt }, backend) => this.#perform(attempt, backend),
      learn: (planned, performed) => this.#learn(planned, performed),
    });
  }

  /** Sequential schedules come first and are played even if the time is up. */
  #next(left: ScheduleSource[] = [], underWay: readonly PlannedSchedule[]): PlannedSchedule | undefined {
    if (this.#failure || this.#options.interrupt?.aborted) return undefined;
    const source = this.#oneAfterAnother;
    const attempt = source.next();
    if (attempt) return { source, attempt };
    if (this.hasGivenUp) left.length = 0;
    const isEnough = this.#schedules + underWay.length >= this.#options.schedules;
    return isEnough || performance.now() >= this.#goEnds ? undefined : this.#nextInTurn(left, underWay);
  }

  #learn({ attempt, source }: PlannedSchedule, performed: PerformedCase): void {
    const judged = this.#account(attempt, performed);
    source.learn(judged, attempt);
    if (this.#trial) return;
    this.#trial = judged;
    this.#everyOrder.learn(judged, attempt);
  }

  #nextInTurn(left: ScheduleSource[], underWay: readonly PlannedSchedule[]): PlannedSchedule | undefined {
    for (let tries = left.length; tries > 0; tries--) {
      const at = this.#turn++ % left.length;
      const source = left[at];
      const attempt = source?.next();
      if (source && attempt) return { source, attempt };
      if (!underWay.some(each => each.source === source)) left.splice(at, 1);
    }
    return undefined;
  }

  /**
   * Whether to stop trying other schedules. If sessions were recorded for one order only, most others are inconclusive,
   * while every crash of the recorded schedule still gives a verdict.
   */
  get hasGivenUp(): boolean {
    const { tried = 0, of } = this.#crashPoints?.coverage ?? {};
    return tried === of && this.#others.schedules >= fewestOthers && isMost(this.#others);
  }

  #account(attempt: ScheduleAttempt, played: PerformedCase): PerformedCase {
    const performed = this.#judge(attempt, played);
    this.#entries += performed.entries;
    if (performed.verdict.kind === 'cut') return performed;
    this.#schedules++;
    this.#classes.see(performed.trace);
    if (performed.isCounterfactual) this.#counterfactual++;
    const isInconclusive = performed.verdict.kind === 'inconclusive';
    if (!attempt.recorded) {
      const { schedules, inconclusive } = this.#others;
      this.#others = { schedules: schedules + 1, inconclusive: inconclusive + (isInconclusive ? 1 : 0) };
    }
    if (performed.verdict.kind === 'inconclusive') {
      this.#inconclusive++;
      this.#doubt ??= performed.verdict.why;
    }
    if (performed.verdict.kind === 'failed')
      this.#failure ??= failureOf(attempt, performed, performed.verdict);
    this.#options.onProgress?.(this.#progress());
    return performed;
  }

  async #perform(
    { policy, adversity }: Pick<ScheduleAttempt, 'policy' | 'adversity'>,
    backend = this.#backend,
  ): Promise<PerformedCase> {
    const { checkKeys } = this.#options;
    const once = (each: Policy) => performCase({ backend, adversity, policy: each, checkKeys });
    return (this.#options.twice ? twice(once, formOf) : once)(policy);
  }

  /** Compares the outcome with those of the sequential schedules. */
  #judge(
    { policy, adversity, recorded }: Pick<ScheduleAttempt, 'policy' | 'adversity' | 'recorded'>,
    performed: PerformedCase,
  ): PerformedCase {
    const { verdict, forms } = performed;
    if (verdict.kind !== 'passed' || adversity.faults.length > 0 || !forms) return performed;
    const isCalm = (policy.isCalm ?? false) && adversity.crashes.length === 0;
    const violation = this.#outcomes.violation(forms, isCalm);
    if (violation) return { ...performed, verdict: { kind: 'failed', ...violation } };
    const why = recorded && !this.#outcomes.areKnown ? changedOutcome(forms, recorded) : undefined;
    return why === undefined ? performed : { ...performed, verdict: { kind: 'inconclusive', why } };
  }

  #progress(): ExplorationProgress {
    return {
      on: this.#backend.kind,
      schedules: this.#schedules,
      entries: this.#entries,
      elapsedMs: this.#spentMs + (this.#goBegan === 0 ? 0 : performance.now() - this.#goBegan),
      ...this.#classes.coverage,
      ...(this.#options.crashes ? { crashPoints: this.#crashPoints?.coverage ?? noneTried } : {}),
    };
  }
}

const noneTried: CrashCoverage = { tried: 0, inconclusive: 0, otherEnds: 0 };

/** A crash may change the outcome legitimately, if it lets another command go first. */
const changedOutcome = ({ work }: OutcomeForms, recorded: OutcomeForms): string | undefined =>
  work === recorded.work
    ? undefined
    : `the outcome with a crash is ${work}, and without ${recorded.work}; whether another order of the commands gives the former is unknown`;
