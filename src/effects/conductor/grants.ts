import { RepriseError } from '../../core/errors.ts';
import { failed, type Outcome } from '../effect.ts';
import { type KeyTable, ok } from '../lane.ts';
import { topLane, type Witness } from '../recording/recording.ts';
import type { EntryPlace, Phase, Tracer } from '../tracer.ts';
import type { AskedEntry, ConductedLane } from './requests.ts';
import type { Player } from './scheduler.ts';

interface GrantsOptions {
  readonly player: Player;
  readonly tracer: Tracer | undefined;
  readonly keys: KeyTable;
  readonly stop: Stop;
  readonly count: WitnessCount;
  readonly perform: (asked: AskedEntry) => Outcome | Promise<unknown>;
  /** The lane was told how its effect ended, and goes on. */
  readonly resume: (lane: ConductedLane) => void;
  /** A performance that took time has ended. */
  readonly landed: () => void;
}

const cancelled: Outcome = { kind: 'cancelled' };

/** Grants what lanes ask for, one thing at a time. */
export class Grants {
  readonly #options: GrantsOptions;
  #granted = 0;
  /** How many lanes wait to be granted something. */
  #waiting = 0;
  #performing: AskedEntry | undefined;
  #performance: Promise<void> = Promise.resolve();

  constructor(options: GrantsOptions) {
    this.#options = options;
    options.stop.addListener(() => this.#performing?.cancel());
  }

  /** The place of the next entry. */
  get granted(): number {
    return this.#granted;
  }

  get canDecide(): boolean {
    return this.#waiting > 0 && !this.#performing;
  }

  /** Resolves when nothing is performed any more. */
  get performance(): Promise<void> {
    return this.#performance;
  }

  asked(): void {
    this.#waiting++;
  }

  /** Its lane is left behind. Resolves when nothing is performed for it any more. */
  async abandon(asked: AskedEntry): Promise<void> {
    if (asked.phase === 'granted') {
      asked.cancel();
      await asked.performed;
      return;
    }
    this.#waiting--;
    if (asked.hasBegun) this.#options.keys.give(asked.keys, 'long');
  }

  grant(asked: AskedEntry): void {
    asked.lane.lastEffect = asked.effect.name;
    const phase = asked.nextPhase;
    if (phase !== 'end' && asked.isDoomed) this.#cancel(asked, phase);
    else if (phase === 'begin') this.#begin(asked);
    else this.#play(asked, phase);
  }

  #cancel(asked: AskedEntry, phase: Phase): void {
    this.#waiting--;
    asked.phase = 'granted';
    asked.wasPerformed();
    const place = this.#nextPlace(asked, phase);
    this.#hand(asked, place, this.#options.player.judge(asked, place, cancelled));
  }

  /** Nothing is performed before the end is granted, so that no two performances overlap. */
  #begin(asked: AskedEntry): void {
    const { keys, count, tracer } = this.#options;
    keys.take(asked.keys, 'long');
    count.began();
    asked.place = this.#nextPlace(asked, 'begin');
    tracer?.granted(asked, asked.place);
  }

  #play(asked: AskedEntry, phase: Phase): void {
    const { keys, count, tracer, player } = this.#options;
    this.#waiting--;
    asked.phase = 'granted';
    const place = this.#nextPlace(asked, phase);
    if (phase === 'short') {
      asked.place = place;
      keys.take(asked.keys, 'short');
      tracer?.granted(asked, place);
    } else count.ended();
    const answer = player.answerOf(asked, place);
    if (answer === 'perform' || (answer === 'cut off' && this.#isPerformedAllTheSame(asked)))
      this.#perform(asked, place);
    else {
      this.#release(asked);
      if (answer !== 'cut off') this.#hand(asked, place, answer);
    }
  }

  /** What a lane asked for that is left behind at the grant is performed in a live world; the lane never hears of it. */
  #isPerformedAllTheSame(asked: AskedEntry): boolean {
    return asked.lane.abandoned && this.#options.player.performs(asked);
  }

  #perform(asked: AskedEntry, place: EntryPlace): void {
    const result = this.#options.perform(asked);
    if (result instanceof Promise) {
      this.#performing = asked;
      this.#performance = result.then(
        value => this.#landLater(asked, place, ok(value)),
        (thrown: unknown) => this.#landLater(asked, place, failed(thrown)),
      );
    } else this.#land(asked, place, result);
  }

  #landLater(asked: AskedEntry, place: EntryPlace, outcome: Outcome): void {
    const { stop, landed } = this.#options;
    this.#performing = undefined;
    stop.guard(() => this.#land(asked, place, outcome));
    landed();
  }

  #land(asked: AskedEntry, place: EntryPlace, outcome: Outcome): void {
    const { stop, player } = this.#options;
    this.#release(asked);
    if (asked.lane.abandoned || stop.error) return;
    // Whatever it answered: the cancel was granted before its end.
    this.#hand(asked, place, player.judge(asked, place, asked.isDoomed ? cancelled : outcome));
  }

  #release(asked: AskedEntry): void {
    this.#options.keys.give(asked.keys, asked.effect.span);
    asked.wasPerformed();
  }

  #hand(asked: AskedEntry, place: EntryPlace, outcome: Outcome): void {
    const { tracer, resume } = this.#options;
    const { lane } = asked;
    if (lane.abandoned) return;
    tracer?.settled(asked, place, outcome);
    // The tracer may have been what was waiting for this to leave the lane behind.
    if (lane.abandoned) return;
    asked.settle(outcome);
    resume(lane);
  }

  #nextPlace({ lane }: AskedEntry, phase: Phase): EntryPlace {
    this.#options.count.granted(lane.name);
    return { n: this.#granted++, i: lane.entries++, phase };
  }
}

/** The first error that stops everything. Whoever has to end with it is told; lanes are not. */
export class Stop {
  #error: Error | undefined;
  #tell: (error: Error) => void = () => {};
  readonly #listeners = new Set<(error: Error) => void>();
  readonly happened: Promise<Error>;

  constructor() {
    this.happened = new Promise(resolve => {
      this.#tell = resolve;
    });
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** Only the first counts: what comes after it is its consequence. */
  because(error: Error): void {
    if (this.#error) return;
    this.#error = error;
    this.#tell(error);
    for (const listener of this.#listeners) listener(error);
    this.#listeners.clear();
  }

  /** What it throws stops everything. */
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
 * When it is decided who goes on. `turn`: when no microtask is left, so that every misuse of a lane is seen.
 * `microtask`: faster, and sees most.
 */
export type Pace = 'turn' | 'microtask';

export interface Pacer {
  /** Somebody may go on now. */
  arm(): void;
  /** A lane runs: it must be parked again when no microtask is left. */
  lanesRun(): void;
}

interface PacerOptions {
  readonly pace: Pace;
  readonly decide: () => void;
  /** No microtask is left. */
  readonly turnIsOver: () => void;
}

/** With pace `microtask`, how many decisions are taken before the event loop gets a turn. */
const decisionsPerTurn = 1000;

export const createPacer = (options: PacerOptions): Pacer =>
  options.pace === 'turn' ? byTurns(options) : byMicrotasks(options);

/** One immediate for both. Never at once: an effect that completed in its call would hide a second one of its lane. */
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

/** Defers the callback, unless it is deferred already. */
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

/** Counts how much goes on at once. */
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
