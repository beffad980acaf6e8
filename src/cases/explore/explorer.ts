import { ClassCount } from '../../effects/explore/coverage.ts';
import type { Policy } from '../../effects/explore/schedule.ts';
import { twice } from '../../effects/explore/search.ts';
import type { Theatre } from './backends.ts';
import {
  type Attempt,
  type Doubt,
  type EndedBy,
  type Exploration,
  type ExploreOptions,
  type Failure,
  failureOf,
  isMost,
  type Progress,
  type Source,
} from './contract.ts';
import { type CrashCoverage, CrashPoints } from './crash-points.ts';
import { Endings, type Forms, OneAfterAnother } from './endings.ts';
import { type PerformedCase, performCase } from './perform.ts';
import { EveryOrder, oneAfterAnother, sourcesFor } from './sources.ts';
import { alikeSteps } from './symmetry.ts';

/**
 * How many schedules are played at once at most: the same on every machine, so that the same come next. With more, the one
 * thread that does all else than git would be what they wait for.
 */
const mostAtOnce = 3;

/** Theatres of one case, in each of which a schedule can be played while others are played in the others. */
export class Theatres {
  readonly #first: Theatre;
  readonly #all: Promise<Theatre>[];
  readonly #free: Promise<Theatre>[];

  constructor(first: Theatre) {
    this.#first = first;
    this.#all = [Promise.resolve(first)];
    this.#free = [...this.#all];
  }

  /** Begins to prepare the others. */
  prepare(): void {
    while (this.#first.another && this.#all.length < mostAtOnce) {
      const other = this.#first.another();
      // Whoever wants to play there hears of it.
      other.catch(() => {});
      this.#all.push(other);
      this.#free.push(other);
    }
  }

  /** One in which nothing is played. The first comes first: it is ready. */
  take(): Promise<Theatre> | undefined {
    return this.#free.shift();
  }

  giveBack(theatre: Theatre): void {
    this.#free.unshift(Promise.resolve(theatre));
  }

  /** Nothing is prepared any more. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#all);
  }
}

interface PlayOptions<T> {
  /** What is to be played next. `undefined` when there is nothing, before what is under way is learned. */
  next(underWay: readonly T[]): T | undefined;
  perform(what: T, theatre: Theatre): Promise<PerformedCase>;
  /** How it went. */
  learn(what: T, performed: PerformedCase): void;
}

interface UnderWay<T> {
  readonly what: T;
  readonly theatre: Theatre;
  readonly performing: Promise<PerformedCase>;
}

/**
 * Plays as many at once as there are theatres. They are learned in the order in which they were begun, so that chance has
 * no part in which come next.
 */
export async function playAtOnce<T>(
  theatres: Theatres,
  { next, perform, learn }: PlayOptions<T>,
): Promise<void> {
  const underWay: UnderWay<T>[] = [];
  const begin = async (): Promise<boolean> => {
    const theatre = await theatres.take();
    const what = theatre && next(underWay.map(each => each.what));
    if (theatre && what === undefined) theatres.giveBack(theatre);
    if (!theatre || what === undefined) return false;
    const performing = perform(what, theatre);
    // Whoever waits for another one first hears of it later.
    performing.catch(() => {});
    underWay.push({ what, theatre, performing });
    return true;
  };
  try {
    for (;;) {
      if (await begin()) continue;
      const first = underWay[0];
      if (!first) return;
      learn(first.what, await first.performing);
      underWay.shift();
      // Not as soon as it has ended: how many are begun before one is learned is not up to which ends first.
      theatres.giveBack(first.theatre);
    }
  } finally {
    await Promise.allSettled([...underWay.map(({ performing }) => performing), theatres.settle()]);
  }
}

/** With fewer, it takes longer to prepare other places for them. */
const fewestAtOnce = 5;

/** A schedule that is to be played, and whoever learns from it. */
interface Planned {
  readonly source: Source;
  readonly attempt: Attempt;
}

/** How many other orders are played before it is said that they show nothing. */
const fewestOthers = 50;

const formOf = ({ forms }: PerformedCase): string => (forms ? `: ${forms.all}` : '');

/** Explores a case in one world, in as many goes as there is time for. */
export class CaseExplorer {
  readonly #theatre: Theatre;
  readonly #theatres: Theatres;
  readonly #options: ExploreOptions;
  readonly #classes = new ClassCount();
  readonly #endings = new Endings();
  /** Tells what a schedule may come to. */
  readonly #oneAfterAnother: OneAfterAnother;
  readonly #alike: readonly (readonly string[])[];
  readonly #everyOrder: EveryOrder;
  #goBegan = 0;
  #goEnds = Number.POSITIVE_INFINITY;
  #spentMs = 0;
  /** The order of the case, which nobody interrupts: all others are found from it. */
  #trial: PerformedCase | undefined;
  #crashPoints: CrashPoints | undefined;
  #sources: Source[] | undefined;
  #turn = 0;
  #schedules = 0;
  #entries = 0;
  #inconclusive = 0;
  #counterfactual = 0;
  #others: Doubt = { inconclusive: 0, schedules: 0 };
  #doubt: string | undefined;
  #failure: Failure | undefined;

  constructor(theatre: Theatre, options: ExploreOptions) {
    this.#theatre = theatre;
    this.#theatres = new Theatres(theatre);
    this.#options = options;
    this.#alike = alikeSteps(theatre.prepared.manifest);
    const [first, ...others] = this.#orders();
    this.#everyOrder = new EveryOrder({ alike: this.#alike, first: first.policy });
    const trial = { ...first, ...this.#everyOrder.next(), by: first.by };
    this.#oneAfterAnother = new OneAfterAnother([trial, ...others], this.#endings);
  }

  get kind(): Theatre['kind'] {
    return this.#theatre.kind;
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Nothing is left to be played, however much time there is. */
  get isSpent(): boolean {
    return this.#limit !== undefined || this.#sources?.length === 0;
  }

  /** What keeps it from going on, beside the time. */
  get #limit(): Exclude<EndedBy, 'time'> | undefined {
    const { schedules, interrupt } = this.#options;
    if (this.#failure) return 'failure';
    if (interrupt?.aborted) return 'interrupt';
    return this.#schedules >= schedules ? 'schedules' : undefined;
  }

  get result(): Exploration {
    return {
      ...this.#progress(),
      // Of what is in doubt nothing was shown.
      isComplete: this.#everyOrder.isComplete && this.#inconclusive === 0 && !this.#failure,
      alike: this.#alike,
      inconclusive: this.#inconclusive,
      doubt: this.#doubt,
      counterfactual: this.#counterfactual,
      isComparedWithOrders: this.#endings.areKnown || !this.#endings.areClosed,
      givenUp: this.hasGivenUp ? this.#others : undefined,
      endedBy: this.#sources?.length === 0 ? undefined : (this.#limit ?? 'time'),
      failure: this.#failure,
    };
  }

  /** The order of the case, which nobody interrupts: that tells how long a schedule is. */
  begin(): Promise<void> {
    return this.#timed(async () => {
      const source = this.#oneAfterAnother;
      const attempt = this.#trial ? undefined : source.next();
      if (attempt) this.#learn({ source, attempt }, await this.#perform(attempt));
    });
  }

  /** Goes on from where it stopped the last time. */
  explore(forMs: number): Promise<void> {
    return this.#timed(async () => {
      this.#goEnds = performance.now() + forMs;
      await this.#takeTurns(trial => (this.#sources ??= this.#sourcesFor(trial)));
    });
  }

  /** Every crash of the recorded order, and nothing else. */
  tryCrashPoints(forMs: number): Promise<void> {
    return this.#timed(async () => {
      this.#goEnds = performance.now() + forMs;
      await this.#takeTurns(trial => [this.#crashPointsOf(trial)]);
    });
  }

  /** Plays one schedule, and judges it as those are judged that are explored. */
  async retry(
    attempt: Pick<Attempt, 'policy' | 'adversity'>,
    { comparesOrders = true }: { readonly comparesOrders?: boolean } = {},
  ): Promise<PerformedCase> {
    if (comparesOrders && !this.#endings.areClosed) await this.#learnOrders();
    return this.#judge(attempt, await this.#perform(attempt));
  }

  /** Without a word about those that fail: it is not they that are asked about. */
  async #learnOrders(): Promise<void> {
    for (const attempt of this.#orders()) this.#endings.learn(await this.#perform(attempt));
    this.#endings.close();
  }

  #orders(): readonly [Attempt, ...Attempt[]] {
    return oneAfterAnother(this.#theatre.prepared.manifest.steps.map(({ name }) => name));
  }

  async #timed(go: () => Promise<void>): Promise<void> {
    this.#goBegan = performance.now();
    await go();
    this.#spentMs += performance.now() - this.#goBegan;
    this.#goBegan = 0;
  }

  #sourcesFor(trial: PerformedCase): Source[] {
    const { crashes, policy } = this.#options;
    const orders = policy === 'auto' || policy === 'dpor' ? [this.#everyOrder] : [];
    const crashPoints = crashes ? [this.#crashPointsOf(trial)] : [];
    return [...orders, ...crashPoints, ...sourcesFor(trial, this.#options)];
  }

  #crashPointsOf(trial: PerformedCase): CrashPoints {
    this.#crashPoints ??= new CrashPoints(this.#theatre.prepared, trial);
    return this.#crashPoints;
  }

  /** One schedule of each, again and again: what one of them would find late, another finds soon. */
  async #takeTurns(sourcesFor: (trial: PerformedCase) => Source[]): Promise<void> {
    if (this.#options.schedules >= fewestAtOnce) this.#theatres.prepare();
    let left: Source[] | undefined;
    await playAtOnce<Planned>(this.#theatres, {
      next: underWay => {
        left ??= this.#trial && sourcesFor(this.#trial);
        return this.#next(left, underWay);
      },
      perform: ({ attempt }, theatre) => this.#perform(attempt, theatre),
      learn: (planned, performed) => this.#learn(planned, performed),
    });
  }

  /** What nobody interrupts comes first, whether or not there is time for more. */
  #next(left: Source[] = [], underWay: readonly Planned[]): Planned | undefined {
    if (this.#failure || this.#options.interrupt?.aborted) return undefined;
    const source = this.#oneAfterAnother;
    const attempt = source.next();
    if (attempt) return { source, attempt };
    if (this.hasGivenUp) left.length = 0;
    const isEnough = this.#schedules + underWay.length >= this.#options.schedules;
    return isEnough || performance.now() >= this.#goEnds ? undefined : this.#nextInTurn(left, underWay);
  }

  #learn({ attempt, source }: Planned, performed: PerformedCase): void {
    const judged = this.#account(attempt, performed);
    source.learn(judged, attempt);
    if (this.#trial) return;
    this.#trial = judged;
    this.#everyOrder.learn(judged, attempt);
  }

  #nextInTurn(left: Source[], underWay: readonly Planned[]): Planned | undefined {
    for (let tries = left.length; tries > 0; tries--) {
      const at = this.#turn++ % left.length;
      const source = left[at];
      const attempt = source?.next();
      if (source && attempt) return { source, attempt };
      if (!underWay.some(each => each.source === source)) left.splice(at, 1);
    }
    return undefined;
  }

  /** What was recorded for one order may say nothing of others, while every crash of that order says something. */
  get hasGivenUp(): boolean {
    const { tried = 0, of } = this.#crashPoints?.coverage ?? {};
    return tried === of && this.#others.schedules >= fewestOthers && isMost(this.#others);
  }

  #account(attempt: Attempt, played: PerformedCase): PerformedCase {
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
    { policy, adversity }: Pick<Attempt, 'policy' | 'adversity'>,
    theatre = this.#theatre,
  ): Promise<PerformedCase> {
    const { checkKeys } = this.#options;
    const once = (each: Policy) => performCase({ theatre, adversity, policy: each, checkKeys });
    return (this.#options.twice ? twice(once, formOf) : once)(policy);
  }

  /** Compares what it came to with what the steps come to one after another. */
  #judge(
    { policy, adversity, recorded }: Pick<Attempt, 'policy' | 'adversity' | 'recorded'>,
    performed: PerformedCase,
  ): PerformedCase {
    const { verdict, forms } = performed;
    if (verdict.kind !== 'passed' || adversity.faults.length > 0 || !forms) return performed;
    const isCalm = (policy.isCalm ?? false) && adversity.crashes.length === 0;
    const odd = this.#endings.violation(forms, isCalm);
    if (odd) return { ...performed, verdict: { kind: 'failed', ...odd } };
    const doubt = recorded && !this.#endings.areKnown ? anotherEnd(forms, recorded) : undefined;
    return doubt === undefined ? performed : { ...performed, verdict: { kind: 'inconclusive', why: doubt } };
  }

  #progress(): Progress {
    return {
      on: this.#theatre.kind,
      schedules: this.#schedules,
      entries: this.#entries,
      elapsedMs: this.#spentMs + (this.#goBegan === 0 ? 0 : performance.now() - this.#goBegan),
      ...this.#classes.coverage,
      ...(this.#options.crashes ? { crashPoints: this.#crashPoints?.coverage ?? noneTried } : {}),
    };
  }
}

const noneTried: CrashCoverage = { tried: 0, inconclusive: 0, otherEnds: 0 };

/** By right, if a crash lets another step come first. */
const anotherEnd = ({ work }: Forms, recorded: Forms): string | undefined =>
  work === recorded.work
    ? undefined
    : `with a crash it comes to ${work}, without to ${recorded.work}, and what other orders come to is not known`;
