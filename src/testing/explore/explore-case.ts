import { ClassCount, type Coverage } from '../../conductor/explore/classes.ts';
import type { Move, Policy, Verdict } from '../../conductor/explore/move.ts';
import type { PolicyName } from '../../conductor/explore/sampling.ts';
import { twice } from '../../conductor/explore/twice.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import { alikeSteps } from './alike.ts';
import type { Adversity, Attempt, Source } from './attempt.ts';
import { type CrashCoverage, CrashPoints } from './crash-points.ts';
import { type Doubt, isMost } from './doubt.ts';
import type { Forms } from './ending.ts';
import { Endings } from './endings.ts';
import { EveryOrder, oneAfterAnother } from './orders.ts';
import { type PerformedCase, performCase } from './perform-case.ts';
import { sourcesFor } from './sources.ts';
import type { Theatre } from './theatre.ts';

export interface ExploreOptions {
  readonly policy: PolicyName;
  readonly forMs: number;
  /** At most so many. */
  readonly schedules: number;
  readonly seed: number;
  readonly crashes: boolean;
  /** Every crash of the recorded order comes before anything else, or there is nothing else. Unless it is said, they take turns with other orders. */
  readonly crashPoints?: 'first' | 'only' | undefined;
  readonly faults: readonly FaultKind[];
  /** What effects change is compared with what they say that they write. */
  readonly checkKeys?: boolean | undefined;
  /** Every schedule is played twice, and has to come to the same. */
  readonly twice?: boolean | undefined;
  /** Both, one after the other, unless it is said. */
  readonly on?: 'memory' | 'git' | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly interrupt?: AbortSignal | undefined;
}

export interface Progress extends Coverage {
  readonly on: Theatre['kind'];
  readonly schedules: number;
  readonly entries: number;
  readonly elapsedMs: number;
  /** If crashes are tried. */
  readonly crashPoints?: CrashCoverage | undefined;
}

/** Why no more was played. */
export type EndedBy = 'failure' | 'interrupt' | 'schedules' | 'time';

/** What came of exploring a case. */
export interface Exploration extends Progress {
  /** Every order was played in which things that conflict can happen while time stands still unless all wait. */
  readonly isComplete: boolean;
  /** Steps which are the same but for their names, so that which of them is which was not tried out. */
  readonly alike: readonly (readonly string[])[];
  /** Schedules of which nothing can be said, because a session was not recorded for what it was asked there. */
  readonly inconclusive: number;
  /** Why, of the first of them. */
  readonly doubt?: string | undefined;
  /** Schedules in which a session was told on another base, or to another prompt, than it was recorded with. */
  readonly counterfactual: number;
  /** Whether it can be told what all one-after-another orders come to, of those that were played. */
  readonly isComparedWithOrders: boolean;
  /** Every crash of the recorded order was tried, and most of so many other orders said nothing: more were not played. */
  readonly givenUp?: Doubt | undefined;
  /** Nothing if there was nothing more to be played. */
  readonly endedBy?: EndedBy | undefined;
  readonly failure?: Failure | undefined;
}

export interface Failure {
  readonly what: string;
  readonly message: string;
  readonly attempt: Pick<Attempt, 'by' | 'seed'>;
  readonly adversity: Adversity;
  readonly isCalm: boolean;
  /** What comes after it comes by itself, with no interruption. */
  readonly trace: readonly Move[];
  /** Where nobody can go on: what lanes wait for. */
  readonly waits: readonly Move[];
}

/** A schedule that is being played. */
interface UnderWay {
  readonly source: Source;
  readonly attempt: Attempt;
  readonly theatre: Theatre;
  readonly performing: Promise<PerformedCase>;
}

/**
 * How many schedules are played at once at most: the same on every machine, so that the same come next. With more, the one
 * thread that does all else than git would be what they wait for.
 */
const mostAtOnce = 3;

/** With fewer, it takes longer to prepare another place for them. */
const fewestForAnother = 5;

/** How many other orders are played before it is said that they show nothing. */
const fewestOthers = 50;

const formOf = ({ forms }: PerformedCase): string => (forms ? `: ${forms.all}` : '');

/** Explores a case in one world, in as many goes as there is time for. */
export class CaseExplorer {
  readonly #theatre: Theatre;
  /** Those in which nothing is played, of all that there are. */
  readonly #free: Theatre[];
  #theatres = 1;
  readonly #options: ExploreOptions;
  readonly #classes = new ClassCount();
  readonly #endings = new Endings();
  readonly #alike: readonly (readonly string[])[];
  readonly #everyOrder: EveryOrder;
  #goBegan = 0;
  #goEnds = Number.POSITIVE_INFINITY;
  #spentMs = 0;
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
    this.#free = [theatre];
    this.#options = options;
    this.#alike = alikeSteps(theatre.prepared.manifest);
    this.#everyOrder = new EveryOrder({ alike: this.#alike });
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
    return this.#timed(async () => void (await this.#playTrial()));
  }

  /** Goes on from where it stopped the last time. */
  explore(forMs: number): Promise<void> {
    return this.#timed(async () => {
      this.#goEnds = performance.now() + forMs;
      const trial = await this.#playOrders();
      this.#sources ??= this.#sourcesFor(trial);
      await this.#takeTurns(this.#sources);
    });
  }

  /** Every crash of the recorded order, and nothing else. */
  tryCrashPoints(forMs: number): Promise<void> {
    return this.#timed(async () => {
      this.#goEnds = performance.now() + forMs;
      await this.#takeTurns([this.#crashPointsOf(await this.#playOrders())]);
    });
  }

  /** Plays one schedule, and judges it as those are judged that are explored. */
  async retry(
    attempt: Pick<Attempt, 'policy' | 'adversity'>,
    { comparesOrders = true }: { readonly comparesOrders?: boolean } = {},
  ): Promise<PerformedCase> {
    if (comparesOrders && !this.#endings.areClosed) await this.#learnOrders();
    return this.#perform(attempt);
  }

  /** Without a word about those that fail: it is not they that are asked about. */
  async #learnOrders(): Promise<void> {
    for (const attempt of this.#orders()) this.#endings.learn(await this.#perform(attempt));
    this.#endings.close();
  }

  async #timed(go: () => Promise<void>): Promise<void> {
    this.#goBegan = performance.now();
    await go();
    this.#spentMs += performance.now() - this.#goBegan;
    this.#goBegan = 0;
  }

  async #playTrial(): Promise<PerformedCase> {
    const [first] = this.#orders();
    this.#trial ??= await this.#playOrder(first);
    return this.#trial;
  }

  /** What nobody interrupts tells what a schedule may come to. */
  async #playOrders(): Promise<PerformedCase> {
    const trial = await this.#playTrial();
    if (this.#endings.areClosed) return trial;
    const [, ...others] = this.#orders();
    for (const attempt of others) if (!this.#failure) await this.#playOrder(attempt);
    this.#endings.close();
    return trial;
  }

  #orders(): readonly [Attempt, ...Attempt[]] {
    return oneAfterAnother(this.#theatre.prepared.manifest.steps.map(({ name }) => name));
  }

  async #playOrder(attempt: Attempt): Promise<PerformedCase> {
    const performed = await this.#play(attempt);
    this.#endings.learn(performed);
    return performed;
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

  /**
   * One schedule of each, again and again: what one of them would find late, another finds soon. Several are played at
   * once, and learned in the order in which they were begun, so that chance has no part in which come next.
   */
  async #takeTurns(left: Source[]): Promise<void> {
    const underWay: UnderWay[] = [];
    try {
      for (;;) {
        const begun = await this.#begin(left, underWay);
        if (begun) {
          underWay.push(begun);
          continue;
        }
        const first = underWay[0];
        if (!first) return;
        const { source, attempt, theatre, performing } = first;
        source.learn(this.#account(attempt, await performing), attempt);
        underWay.shift();
        // Not as soon as it has ended: how many are begun before one is learned is not up to which ends first.
        this.#free.push(theatre);
      }
    } finally {
      await Promise.allSettled(underWay.map(({ performing }) => performing));
    }
  }

  async #begin(left: Source[], underWay: readonly UnderWay[]): Promise<UnderWay | undefined> {
    if (this.hasGivenUp) left.length = 0;
    const isEnough = this.#schedules + underWay.length >= this.#options.schedules;
    if (this.#limit || isEnough || performance.now() >= this.#goEnds) return undefined;
    const theatre = await this.#freeTheatre();
    const next = theatre && this.#nextAttempt(left, underWay);
    if (!next) {
      if (theatre) this.#free.push(theatre);
      return undefined;
    }
    const performing = this.#perform(next.attempt, theatre);
    // Whoever waits for another one first hears of it later.
    performing.catch(() => {});
    return { ...next, theatre, performing };
  }

  #nextAttempt(
    left: Source[],
    underWay: readonly UnderWay[],
  ): Pick<UnderWay, 'source' | 'attempt'> | undefined {
    for (let tries = left.length; tries > 0; tries--) {
      const at = this.#turn++ % left.length;
      const source = left[at];
      const attempt = source?.next();
      if (source && attempt) return { source, attempt };
      if (!underWay.some(each => each.source === source)) left.splice(at, 1);
    }
    return undefined;
  }

  async #freeTheatre(): Promise<Theatre | undefined> {
    const free = this.#free.pop();
    if (free || this.#theatres >= mostAtOnce || this.#schedules < fewestForAnother) return free;
    this.#theatres++;
    return this.#theatre.another?.();
  }

  /** What was recorded for one order may say nothing of others, while every crash of that order says something. */
  get hasGivenUp(): boolean {
    const { tried = 0, of } = this.#crashPoints?.coverage ?? {};
    return tried === of && this.#others.schedules >= fewestOthers && isMost(this.#others);
  }

  async #play(attempt: Attempt): Promise<PerformedCase> {
    return this.#account(attempt, await this.#perform(attempt));
  }

  #account(attempt: Attempt, performed: PerformedCase): PerformedCase {
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
    attempt: Pick<Attempt, 'policy' | 'adversity' | 'recorded'>,
    theatre = this.#theatre,
  ): Promise<PerformedCase> {
    const { policy, adversity, recorded } = attempt;
    const { checkKeys } = this.#options;
    const once = (each: Policy) => performCase({ theatre, adversity, policy: each, checkKeys });
    const performed = await (this.#options.twice ? twice(once, formOf) : once)(policy);
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

const failureOf = (
  { by, seed, adversity, policy }: Attempt,
  { trace, verdict, left }: PerformedCase,
  { what, message }: Pick<Failure, 'what' | 'message'>,
): Failure => ({
  what,
  message,
  attempt: { by, seed },
  adversity,
  isCalm: policy.isCalm ?? false,
  trace,
  waits: waitsOf(verdict, left),
});

export const waitsOf = (verdict: Verdict, left: readonly Move[]): readonly Move[] =>
  verdict.kind === 'failed' && verdict.what === 'deadlock' ? left : [];
