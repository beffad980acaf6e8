import { ClassCount, type Coverage } from '../../conductor/explore/classes.ts';
import { followLeniently } from '../../conductor/explore/follow.ts';
import { minimise } from '../../conductor/explore/minimise.ts';
import type { Move } from '../../conductor/explore/move.ts';
import type { PolicyName } from '../../conductor/explore/sampling.ts';
import { topLane } from '../../world/recording.ts';
import type { FaultKind } from '../manifest/manifest.ts';
import { everyMishap, oneMishapEach, withMishaps } from './adversities.ts';
import type { Adversity, Attempt, Source } from './attempt.ts';
import { Endings } from './endings.ts';
import { EveryOrder, oneAfterAnother, oneStallEach, SomeOrders } from './orders.ts';
import { type PerformedCase, performCase } from './perform-case.ts';
import type { PreparedCase } from './prepared-case.ts';
import type { Theatre } from './theatre.ts';

export interface ExploreOptions {
  readonly policy: PolicyName;
  readonly forMs: number;
  /** At most so many. */
  readonly schedules: number;
  readonly seed: number;
  readonly crashes: boolean;
  readonly faults: readonly FaultKind[];
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
}

/** What came of exploring a case. */
export interface Exploration extends Progress {
  /** Every order was played in which things that conflict can happen while time stands still unless all wait. */
  readonly isComplete: boolean;
  /** Schedules of which nothing can be said, because a session was not recorded for what it was asked there. */
  readonly inconclusive: number;
  /** Why, of the first of them. */
  readonly doubt?: string | undefined;
  /** Schedules in which a session was told on another base, or to another prompt, than it was recorded with. */
  readonly counterfactual: number;
  /** Whether it could be told what all one-after-another orders come to. */
  readonly isComparedWithOrders: boolean;
  readonly failure?: Failure | undefined;
}

export interface Failure {
  readonly what: string;
  readonly message: string;
  readonly attempt: Pick<Attempt, 'by' | 'seed'>;
  readonly adversity: Adversity;
  readonly isCalm: boolean;
  /** As short as could be found. */
  readonly trace: readonly Move[];
}

/** Above this share of doubt, nothing was shown. */
export const mostDoubt = 0.2;

const minimisingTries = { memory: 150, git: 40 };

/** Explores a case in one world. */
export class CaseExplorer {
  readonly #prepared: PreparedCase;
  readonly #theatre: Theatre;
  readonly #options: ExploreOptions;
  readonly #classes = new ClassCount();
  readonly #endings = new Endings();
  readonly #began = performance.now();
  readonly #everyOrder = new EveryOrder();
  #schedules = 0;
  #entries = 0;
  #inconclusive = 0;
  #counterfactual = 0;
  #doubt: string | undefined;
  #failure: Failure | undefined;

  constructor(prepared: PreparedCase, theatre: Theatre, options: ExploreOptions) {
    this.#prepared = prepared;
    this.#theatre = theatre;
    this.#options = options;
  }

  async explore(): Promise<Exploration> {
    const trial = await this.#playOrders();
    if (!this.#isOver()) await this.#search(trial);
    return {
      ...this.#progress(),
      // Of what is in doubt nothing was shown.
      isComplete: this.#everyOrder.isComplete && this.#inconclusive === 0 && !this.#failure,
      inconclusive: this.#inconclusive,
      doubt: this.#doubt,
      counterfactual: this.#counterfactual,
      isComparedWithOrders: this.#endings.areKnown,
      failure: this.#failure,
    };
  }

  /** Plays one schedule, and judges it as those are judged that are explored. */
  async retry(attempt: Pick<Attempt, 'policy' | 'adversity'>): Promise<PerformedCase> {
    await this.#playOrders();
    return this.#perform(attempt);
  }

  /** First of all what nobody interrupts: that tells how long a schedule is, and what it may come to. */
  async #playOrders(): Promise<PerformedCase> {
    const [first, ...others] = oneAfterAnother(this.#prepared.manifest.steps.map(({ name }) => name));
    const trial = await this.#playOrder(first);
    for (const attempt of others) if (!this.#failure) await this.#playOrder(attempt);
    this.#endings.close();
    return trial;
  }

  async #playOrder(attempt: Attempt): Promise<PerformedCase> {
    const performed = await this.#play(attempt);
    this.#endings.learn(performed);
    return performed;
  }

  async #search(trial: PerformedCase): Promise<void> {
    const { policy } = this.#options;
    const mishaps = everyMishap(trial, this.#options);
    const orders = policy === 'auto' || policy === 'dpor' ? [this.#everyOrder] : [];
    const stalls = policy === 'auto' ? [oneStallEach(trial)] : [];
    await this.#takeTurns([
      ...orders,
      ...stalls,
      ...stalls,
      ...(mishaps.length > 0 ? [oneMishapEach(mishaps)] : []),
      ...this.#samplers(trial, mishaps),
    ]);
  }

  #samplers(trial: PerformedCase, mishaps: readonly Adversity[]): readonly Source[] {
    const { policy, seed } = this.#options;
    const sampled = policy === 'auto' ? (['urw', 'pct', 'random'] as const) : ([policy] as const);
    return sampled.flatMap(each => {
      if (each === 'dpor') return [];
      const orders = new SomeOrders(each, { seed, trial });
      if (mishaps.length === 0) return [orders];
      return [orders, withMishaps(new SomeOrders(each, { seed: seed + 1_000_000, trial }), mishaps, seed)];
    });
  }

  /** One schedule of each, again and again: what one of them would find late, another finds soon. */
  async #takeTurns(sources: readonly Source[]): Promise<void> {
    const left = [...sources];
    for (let turn = 0; left.length > 0 && !this.#isOver(); turn++) {
      const source = left[turn % left.length];
      const attempt = source?.next();
      if (attempt) source?.learn(await this.#play(attempt));
      else left.splice(turn % left.length, 1);
    }
  }

  #isOver(): boolean {
    const { schedules, forMs, interrupt } = this.#options;
    return (
      this.#failure !== undefined ||
      interrupt?.aborted === true ||
      this.#schedules >= schedules ||
      performance.now() - this.#began >= forMs
    );
  }

  async #play(attempt: Attempt): Promise<PerformedCase> {
    const performed = await this.#perform(attempt);
    this.#entries += performed.entries;
    if (performed.verdict.kind === 'cut') return performed;
    this.#schedules++;
    this.#classes.see(performed.trace);
    if (performed.isCounterfactual) this.#counterfactual++;
    if (performed.verdict.kind === 'inconclusive') {
      this.#inconclusive++;
      this.#doubt ??= performed.verdict.why;
    }
    if (performed.verdict.kind === 'failed') await this.#fail(attempt, performed);
    this.#options.onProgress?.(this.#progress());
    return performed;
  }

  async #perform({ policy, adversity }: Pick<Attempt, 'policy' | 'adversity'>): Promise<PerformedCase> {
    const theatre = this.#theatre;
    const performed = await performCase({ prepared: this.#prepared, theatre, policy, adversity });
    const isCalm = (policy.isCalm ?? false) && adversity.crashes.length + adversity.faults.length === 0;
    const odd =
      performed.verdict.kind === 'passed' && adversity.faults.length === 0 && performed.forms
        ? this.#endings.violation(performed.forms, isCalm)
        : undefined;
    return odd ? { ...performed, verdict: { kind: 'failed', ...odd } } : performed;
  }

  async #fail(attempt: Attempt, performed: PerformedCase): Promise<void> {
    if (performed.verdict.kind !== 'failed') return;
    const { what } = performed.verdict;
    const wasCalm = attempt.policy.isCalm ?? false;
    const adversity = await this.#leastAdversity(attempt.adversity, performed, wasCalm);
    const calm = wasCalm ? undefined : await this.#calmer(performed, adversity);
    const isCalm = wasCalm || calm !== undefined;
    const most = minimisingTries[this.#theatre.kind];
    const { performed: shortest } = await minimise(
      policy => this.#perform({ policy, adversity }),
      calm ?? performed,
      { isCalm, most, ofLane: topLane },
    );
    const { message } = shortest.verdict.kind === 'failed' ? shortest.verdict : performed.verdict;
    const { by, seed } = attempt;
    this.#failure = { what, message, attempt: { by, seed }, adversity, isCalm, trace: shortest.trace };
  }

  /** The same without time that passes while somebody could go on, if it fails as well. */
  async #calmer({ trace, verdict }: PerformedCase, adversity: Adversity): Promise<PerformedCase | undefined> {
    const calm = await this.#perform({ policy: followLeniently(trace, { isCalm: true }), adversity });
    const isSame =
      calm.verdict.kind === 'failed' && verdict.kind === 'failed' && calm.verdict.what === verdict.what;
    return isSame ? calm : undefined;
  }

  /** Without those crashes and faults that it would fail without. */
  async #leastAdversity(
    all: Adversity,
    { trace, verdict }: PerformedCase,
    isCalm: boolean,
  ): Promise<Adversity> {
    const failsWith = async (adversity: Adversity) => {
      const { verdict: now } = await this.#perform({ policy: followLeniently(trace, { isCalm }), adversity });
      return now.kind === 'failed' && verdict.kind === 'failed' && now.what === verdict.what;
    };
    let least = all;
    for (const crash of all.crashes) {
      const fewer = { ...least, crashes: least.crashes.filter(each => each !== crash) };
      if (await failsWith(fewer)) least = fewer;
    }
    for (const fault of all.faults) {
      const fewer = { ...least, faults: least.faults.filter(each => each !== fault) };
      if (await failsWith(fewer)) least = fewer;
    }
    return least;
  }

  #progress(): Progress {
    return {
      on: this.#theatre.kind,
      schedules: this.#schedules,
      entries: this.#entries,
      elapsedMs: performance.now() - this.#began,
      ...this.#classes.coverage,
    };
  }
}
