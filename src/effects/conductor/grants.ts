import { RepriseError } from '../../core/index.ts';
import { type EffectOutcome, failed } from '../effect.ts';
import type { KeyTable } from '../key-table.ts';
import { ok } from '../lane.ts';
import { topLane, type Witness } from '../recording/recording.ts';
import type { EntryPlace, Phase, Tracer } from '../tracer.ts';
import type { ConductedLane, PendingEntry } from './pending.ts';
import type { Scheduler } from './scheduler.ts';

interface GrantsOptions {
  readonly scheduler: Scheduler;
  readonly tracer: Tracer | undefined;
  readonly keys: KeyTable;
  readonly stop: StopSignal;
  readonly count: WitnessCount;
  readonly perform: (pending: PendingEntry) => EffectOutcome | Promise<unknown>;
  /** Called after an outcome was delivered to the lane, which continues. */
  readonly resume: (lane: ConductedLane) => void;
  /** Called when an asynchronous effect has ended. */
  readonly landed: () => void;
}

const cancelled: EffectOutcome = { kind: 'cancelled' };

/** Grants pending effects, one at a time. */
export class Grants {
  readonly #options: GrantsOptions;
  #granted = 0;
  /** Number of lanes with a pending effect. */
  #waiting = 0;
  #performing: PendingEntry | undefined;
  #performance: Promise<void> = Promise.resolve();

  constructor(options: GrantsOptions) {
    this.#options = options;
    options.stop.addListener(() => this.#performing?.cancel());
  }

  /** Position of the next entry. */
  get granted(): number {
    return this.#granted;
  }

  get canDecide(): boolean {
    return this.#waiting > 0 && !this.#performing;
  }

  /** Resolves when no effect is being performed. */
  get performance(): Promise<void> {
    return this.#performance;
  }

  asked(): void {
    this.#waiting++;
  }

  /** Drops the pending effect of an abandoned lane. Resolves when it is no longer being performed. */
  async abandon(pending: PendingEntry): Promise<void> {
    if (pending.phase === 'granted') {
      pending.cancel();
      await pending.performed;
      return;
    }
    this.#waiting--;
    if (pending.hasBegun) this.#options.keys.give(pending.keys, 'long');
  }

  grant(pending: PendingEntry): void {
    pending.lane.lastEffect = pending.effect.name;
    const phase = pending.nextPhase;
    if (phase !== 'end' && pending.isCancelling) this.#cancel(pending, phase);
    else if (phase === 'begin') this.#begin(pending);
    else this.#play(pending, phase);
  }

  #cancel(pending: PendingEntry, phase: Phase): void {
    this.#waiting--;
    pending.phase = 'granted';
    pending.wasPerformed();
    const position = this.#nextPlace(pending, phase);
    this.#hand(pending, position, this.#options.scheduler.judge(pending, position, cancelled));
  }

  /** The effect is performed only when its end is granted, so that no two effects overlap. */
  #begin(pending: PendingEntry): void {
    const { keys, count, tracer } = this.#options;
    keys.take(pending.keys, 'long');
    count.began();
    pending.place = this.#nextPlace(pending, 'begin');
    tracer?.granted(pending, pending.place);
  }

  #play(pending: PendingEntry, phase: Phase): void {
    const { keys, count, tracer, scheduler } = this.#options;
    this.#waiting--;
    pending.phase = 'granted';
    const position = this.#nextPlace(pending, phase);
    if (phase === 'short') {
      pending.place = position;
      keys.take(pending.keys, 'short');
      tracer?.granted(pending, position);
    } else count.ended();
    const answer = scheduler.answerOf(pending, position);
    if (answer === 'perform' || (answer === 'cut off' && this.#isPerformedAnyway(pending)))
      this.#perform(pending, position);
    else {
      this.#release(pending);
      if (answer !== 'cut off') this.#hand(pending, position, answer);
    }
  }

  /** Whether an effect is performed although its lane was abandoned at the grant, as in a live world. */
  #isPerformedAnyway(pending: PendingEntry): boolean {
    return pending.lane.abandoned && this.#options.scheduler.performs(pending);
  }

  #perform(pending: PendingEntry, position: EntryPlace): void {
    const result = this.#options.perform(pending);
    if (result instanceof Promise) {
      this.#performing = pending;
      this.#performance = result.then(
        value => this.#landLater(pending, position, ok(value)),
        (thrown: unknown) => this.#landLater(pending, position, failed(thrown)),
      );
    } else this.#land(pending, position, result);
  }

  #landLater(pending: PendingEntry, position: EntryPlace, outcome: EffectOutcome): void {
    const { stop, landed } = this.#options;
    this.#performing = undefined;
    stop.guard(() => this.#land(pending, position, outcome));
    landed();
  }

  #land(pending: PendingEntry, position: EntryPlace, outcome: EffectOutcome): void {
    const { stop, scheduler } = this.#options;
    this.#release(pending);
    if (pending.lane.abandoned || stop.error) return;
    // The cancel was granted before the end of the effect, so its result does not count.
    this.#hand(
      pending,
      position,
      scheduler.judge(pending, position, pending.isCancelling ? cancelled : outcome),
    );
  }

  #release(pending: PendingEntry): void {
    this.#options.keys.give(pending.keys, pending.effect.span);
    pending.wasPerformed();
  }

  #hand(pending: PendingEntry, position: EntryPlace, outcome: EffectOutcome): void {
    const { tracer, resume } = this.#options;
    const { lane } = pending;
    if (lane.abandoned) return;
    tracer?.settled(pending, position, outcome);
    // The tracer may have abandoned the lane.
    if (lane.abandoned) return;
    pending.settle(outcome);
    resume(lane);
  }

  #nextPlace({ lane }: PendingEntry, phase: Phase): EntryPlace {
    this.#options.count.granted(lane.name);
    return { n: this.#granted++, i: lane.entries++, phase };
  }
}

/** The first error, which stops the world. Listeners are notified; lanes never see it. */
export class StopSignal {
  #error: Error | undefined;
  #resolve: (error: Error) => void = () => {};
  readonly #listeners = new Set<(error: Error) => void>();
  readonly happened: Promise<Error>;

  constructor() {
    this.happened = new Promise(resolve => {
      this.#resolve = resolve;
    });
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** Stops the world. Later errors are ignored, because they are consequences of the first. */
  because(error: Error): void {
    if (this.#error) return;
    this.#error = error;
    this.#resolve(error);
    for (const listener of this.#listeners) listener(error);
    this.#listeners.clear();
  }

  /** Stops the world if the action throws. */
  guard(action: () => void): void {
    try {
      action();
    } catch (thrown) {
      this.because(thrown instanceof Error ? thrown : new RepriseError('INTERNAL', String(thrown)));
    }
  }

  addListener(listener: (error: Error) => void): void {
    this.#listeners.add(listener);
  }

  removeListener(listener: (error: Error) => void): void {
    this.#listeners.delete(listener);
  }
}

/**
 * Moment of the next decision. `turn` decides when no microtask is left, so that every misuse by a lane is detected.
 * `microtask` is faster and detects most.
 */
export type Pace = 'turn' | 'microtask';

export interface Pacer {
  /** Schedules a decision. */
  arm(): void;
  /** Schedules the check that the running lanes are parked again when no microtask is left. */
  lanesRun(): void;
}

interface PacerOptions {
  readonly pace: Pace;
  readonly decide: () => void;
  /** Called when no microtask is left. */
  readonly turnIsOver: () => void;
}

/** Number of decisions before the event loop gets a turn, with pace `microtask`. */
const decisionsPerTurn = 1000;

export const createPacer = (options: PacerOptions): Pacer =>
  options.pace === 'turn' ? byTurns(options) : byMicrotasks(options);

/** Always deferred: an effect that completed within its call would hide a second one of the same lane. */
function byTurns({ decide, turnIsOver }: PacerOptions): Pacer {
  const arm = once(setImmediate, () => {
    turnIsOver();
    decide();
  });
  return { arm, lanesRun: arm };
}

function byMicrotasks({ decide, turnIsOver }: PacerOptions): Pacer {
  let decisions = 0;
  const defer = (callback: () => void) => {
    if (++decisions % decisionsPerTurn === 0) setImmediate(callback);
    else queueMicrotask(callback);
  };
  return { arm: once(defer, decide), lanesRun: once(setImmediate, turnIsOver) };
}

/** Returns a function that defers the callback, unless it is already deferred. */
function once(defer: (callback: () => void) => void, callback: () => void): () => void {
  let isArmed = false;
  const run = () => {
    isArmed = false;
    callback();
  };
  return () => {
    if (isArmed) return;
    isArmed = true;
    defer(run);
  };
}

/** Measures the concurrency of a conducted world. */
export class WitnessCount {
  #open = 0;
  #inFlight = 0;
  #lastTop: string | undefined;
  #mostOpen = 0;
  #mostInFlight = 0;
  #switches = 0;

  opened(): void {
    this.#mostOpen = Math.max(this.#mostOpen, ++this.#open);
  }

  closed(): void {
    this.#open--;
  }

  began(): void {
    this.#mostInFlight = Math.max(this.#mostInFlight, ++this.#inFlight);
  }

  ended(): void {
    this.#inFlight--;
  }

  granted(lane: string): void {
    const top = topLane(lane);
    if (this.#lastTop !== undefined && this.#lastTop !== top) this.#switches++;
    this.#lastTop = top;
  }

  get witness(): Witness {
    return { mostOpen: this.#mostOpen, mostInFlight: this.#mostInFlight, switches: this.#switches };
  }
}
