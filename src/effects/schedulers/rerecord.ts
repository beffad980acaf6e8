import { RepriseError } from '../../core/index.ts';
import type {
  LaneScheduler,
  LaneStatus,
  PendingEffect,
  Scheduler,
  SchedulerFactory,
  SchedulerView,
} from '../conductor/scheduler.ts';
import { conflicts, type EffectOutcome, type Keys } from '../effect.ts';
import { indexTapes, type RecordedEntry, type Tapes, topLane, type Witness } from '../recording/recording.ts';
import type { EntryPlace } from '../tracer.ts';
import { type ReplaySchedulerOptions, replayScheduler } from './replay.ts';
import { roundRobinScheduler, type VirtualTime } from './round-robin.ts';

interface TakeSlot {
  readonly key: string;
  readonly agent: string;
  readonly places: number;
}

/**
 * Agent slots that are taken. A wait for a slot must not be performed before the slot is free: no other lane runs while
 * an effect is performed, so it would wait forever.
 */
class TakenSlots {
  /** Agent by the key of the slot's holder. */
  readonly #taken = new Map<string, string>();

  note({ effect, args, nextPhase }: PendingEffect, { kind }: EffectOutcome): void {
    if (effect.name === 'agent.release-slot') this.#taken.delete((args as Pick<TakeSlot, 'key'>).key);
    else if (effect.name === 'agent.take-slot' && nextPhase === 'end' && kind === 'ok') {
      const { key, agent } = args as TakeSlot;
      this.#taken.set(key, agent);
    }
  }

  isFreeFor({ effect, args }: PendingEffect): boolean {
    if (effect.name !== 'agent.take-slot') return true;
    const { agent, places } = args as TakeSlot;
    return [...this.#taken.values()].filter(taken => taken === agent).length < places;
  }
}

interface Write {
  readonly lane: string;
  readonly op: string;
  readonly keys: Keys;
}

interface PinnedMismatch {
  readonly error: unknown;
  /** Pending effect of the pinned lane. */
  readonly pending: PendingEffect | undefined;
  /** Pinned step; `undefined` if all pinned steps have ended. */
  readonly step: string | undefined;
}

/** Writes of the live step, to explain why a pinned step no longer matches its recording. */
class LiveWrites {
  readonly #live: string;
  readonly #rerecord: string;
  readonly #writes: Write[] = [];
  #whyOutOfOrder: string | undefined;

  constructor(live: string, rerecord: string) {
    this.#live = live;
    this.#rerecord = rerecord;
  }

  add({ lane, op, keys }: PendingEffect): void {
    if (keys.writes?.length) this.#writes.push({ lane: lane.name, op, keys });
  }

  leftOrder(why: string): void {
    this.#whyOutOfOrder = why;
  }

  /** Adds to the error of a pinned lane how the live step caused it. Returns errors of other kinds unchanged. */
  refusal({ error, pending, step }: PinnedMismatch): unknown {
    if (!(error instanceof RepriseError)) return error;
    const what =
      step === undefined
        ? `step ${this.#live} cannot be recorded alone`
        : `step ${step} no longer matches its recording, because step ${this.#live} behaves differently`;
    const message = [what, ...this.#order(), ...this.#shared(pending), error.message].join('\n');
    return this.#error(message);
  }

  cutOff({ effect, lane }: PendingEffect): RepriseError {
    return this.#error(
      `step ${this.#live} cannot be recorded alone: ${effect.name} of lane ${lane.name} is interrupted, and only a recording of the whole case shows how far it gets`,
    );
  }

  #error(message: string): RepriseError {
    return new RepriseError('REPLAY_DIVERGED', message, { hint: `record the whole case: ${this.#rerecord}` });
  }

  #order(): readonly string[] {
    return this.#whyOutOfOrder === undefined
      ? []
      : [`  ${this.#live} left the recorded order: ${this.#whyOutOfOrder}`];
  }

  #shared(pending: PendingEffect | undefined): readonly string[] {
    const write = pending && this.#writes.findLast(({ keys }) => conflicts(keys, pending.keys));
    if (!write) return [];
    const { reads = [], writes = [] } = pending.keys;
    const both = (write.keys.writes ?? []).filter(key => overlaps(key, [...reads, ...writes]));
    const keys = both.length > 0 ? both : (write.keys.reads ?? []).filter(key => overlaps(key, writes));
    return [`  both use ${keys.join(', ')}: ${write.op} of lane ${write.lane} came first`];
  }
}

/** A key that ends with `:` covers all keys with that prefix. */
const overlaps = (key: string, others: readonly string[]): boolean =>
  conflicts({ writes: [key] }, { writes: others });

interface RerecordOptions extends Omit<ReplaySchedulerOptions, 'fidelity' | 'rerecord'> {
  /** Step (root lane) that is performed for real. All others follow their recording. */
  readonly live: string;
  /** Virtual clock, which follows the moments on the tapes. */
  readonly time: VirtualTime;
  /** Command that records the whole case again, for messages. */
  readonly rerecord: string;
}

/**
 * A scheduler that performs one step for real, while the others are pinned to their recording. The recorded order is
 * kept as long as the live step calls the same effects; their arguments and results may change. Once it calls another
 * effect, its recorded turns are dropped, and from then on it runs first whenever it can. Throws REPLAY_DIVERGED if a
 * pinned lane no longer matches its recording.
 */
export function rerecordScheduler({ live, time, ...options }: RerecordOptions): SchedulerFactory {
  // The live step may change how much runs in parallel, so the witness is not compared.
  const recording = { ...options.recording, witness: noConcurrency };
  const pinned = replayScheduler({ ...options, recording, fidelity: 'sessions' });
  const parts = { live, time, tapes: indexTapes(recording), rerecord: options.rerecord };
  return view => new RerecordScheduler({ ...parts, view, pinned });
}

/** Effects of sessions, scripts and functions. */
const work: ReadonlySet<string> = new Set(['session.next', 'shell.run', 'function.next']);

const noConcurrency: Witness = { mostOpen: 0, mostInFlight: 0, switches: 0 };

interface RerecordContext {
  readonly live: string;
  readonly time: VirtualTime;
  readonly tapes: Tapes;
  readonly rerecord: string;
  readonly view: SchedulerView;
  readonly pinned: SchedulerFactory<LaneScheduler>;
}

class RerecordScheduler implements Scheduler {
  readonly #parts: RerecordContext;
  readonly #pinned: LaneScheduler;
  readonly #free: LaneScheduler;
  readonly #freeView: SchedulerView;
  readonly #writes: LiveWrites;
  readonly #slots = new TakenSlots();
  /** Position in the recorded order. */
  #at = 0;
  #hasLeftOrder = false;
  #maySleepersWake = false;

  constructor(parts: RerecordContext) {
    this.#parts = parts;
    const { view, live, rerecord } = parts;
    this.#freeView = narrowed(view, {
      granted: () => view.granted,
      shows: status => this.#isLive(status.lane) && (this.#maySleepersWake || !isAsleep(status)),
    });
    const pinnedView = narrowed(view, {
      granted: () => {
        this.#due();
        return this.#at;
      },
      shows: ({ lane }) => !this.#isLive(lane),
    });
    this.#pinned = parts.pinned(pinnedView);
    this.#free = roundRobinScheduler(parts.time)(this.#freeView);
    this.#writes = new LiveWrites(live, rerecord);
  }

  next(): PendingEffect {
    const due = this.#due();
    if (due && this.#isLive(due.lane)) return this.#nextInPlace(due) ?? this.next();
    if (this.#hasLeftOrder && this.#canLiveContinue('awake')) return this.#nextOfLive();
    if (!this.#isReady(due) && this.#canLiveContinue('woken')) {
      this.#leaveOrder(
        `it continues ${due ? `before ${due.op} of lane ${due.lane}` : 'after the end of its recording'}`,
      );
      return this.#nextOfLive();
    }
    const pending = due && this.#parts.view.pendingOf(due.lane);
    const next = this.#asRecorded(pending, due, () => (due ? this.#pinned : this.#free).next());
    this.#at++;
    return next;
  }

  performs(pending: PendingEffect): boolean {
    return this.#schedulerOf(pending).performs(pending);
  }

  canEnd(pending: PendingEffect): boolean {
    return (
      this.#schedulerOf(pending).canEnd(pending) &&
      (!this.#isLive(pending.lane.name) || this.#slots.isFreeFor(pending))
    );
  }

  answerOf(pending: PendingEffect, position: EntryPlace): EffectOutcome | 'perform' | 'cut off' {
    const recorded = this.#parts.tapes.of(pending.lane.name)[position.i];
    const isLive = this.#isLive(pending.lane.name);
    if (!isLive || !this.#hasLeftOrder) this.#setClock(recorded);
    if (isLive) return this.#knownId(pending, recorded) ?? this.#answerOfLive(pending, position);
    return this.#asRecorded(pending, recorded, () =>
      this.#pinned.answerOf(pending, { ...position, n: recorded?.n ?? this.#at }),
    );
  }

  judge(pending: PendingEffect, position: EntryPlace, outcome: EffectOutcome): EffectOutcome {
    this.#slots.note(pending, outcome);
    if (this.#isLive(pending.lane.name)) return outcome;
    const recorded = this.#parts.tapes.of(pending.lane.name)[position.i];
    return this.#asRecorded(pending, recorded, () =>
      this.#pinned.judge(pending, { ...position, n: recorded?.n ?? this.#at }, outcome),
    );
  }

  laneEnded(lane: string, entries: number): void {
    if (this.#isLive(lane)) return;
    this.#asRecorded(undefined, { lane }, () => this.#pinned.laneEnded(lane, entries));
  }

  finished(witness: Witness): void {
    this.#leaveOrder('it has ended');
    this.#asRecorded(undefined, this.#due(), () => this.#pinned.finished(witness));
  }

  #isLive(lane: string): boolean {
    return topLane(lane) === this.#parts.live;
  }

  #schedulerOf({ lane }: PendingEffect): Scheduler {
    return this.#isLive(lane.name) ? this.#free : this.#pinned;
  }

  /** Keeps the recorded id of the run, because other steps may use it. */
  #knownId({ effect }: PendingEffect, recorded: RecordedEntry | undefined): EffectOutcome | undefined {
    return effect.name === 'ids.new' && recorded?.op === 'ids.new' && !this.#hasLeftOrder
      ? recorded.outcome
      : undefined;
  }

  #answerOfLive(pending: PendingEffect, position: EntryPlace): EffectOutcome | 'perform' | 'cut off' {
    // It is performed when its end is granted, so it would start cancelled and do none of the work before the cancel.
    if (pending.isCancelling && work.has(pending.effect.name)) throw this.#writes.cutOff(pending);
    return this.#free.answerOf(pending, position);
  }

  /** Next entry in the recorded order. */
  #due(): RecordedEntry | undefined {
    const { score } = this.#parts.tapes;
    let due = score[this.#at];
    while (due && this.#hasLeftOrder && this.#isLive(due.lane)) due = score[++this.#at];
    return due;
  }

  /** The pending effect of the live step, if it is the recorded one and can be granted. */
  #nextInPlace(due: RecordedEntry): PendingEffect | undefined {
    const { view } = this.#parts;
    const pending = view.pendingOf(due.lane);
    if (pending?.op === due.op && pending.i === due.i && !view.obstacleOf(pending)) {
      this.#at++;
      this.#writes.add(pending);
      return pending;
    }
    const now = pending ? (pending.op === due.op ? 'has to wait' : `calls ${pending.op}`) : 'makes no call';
    this.#leaveOrder(`lane ${due.lane} ${now} where ${due.op} was recorded`);
    return undefined;
  }

  #nextOfLive(): PendingEffect {
    const pending = this.#free.next();
    this.#writes.add(pending);
    return pending;
  }

  #leaveOrder(why: string): void {
    if (this.#hasLeftOrder) return;
    this.#hasLeftOrder = true;
    this.#writes.leftOrder(why);
  }

  #canLiveContinue(who: 'awake' | 'woken'): boolean {
    this.#maySleepersWake = who === 'woken';
    return this.#freeView.statuses().some(status => status.kind === 'parked' && !status.obstacle);
  }

  #isReady(due: RecordedEntry | undefined): boolean {
    const pending = due && this.#parts.view.pendingOf(due.lane);
    return pending !== undefined && !this.#parts.view.obstacleOf(pending);
  }

  #setClock(recorded: RecordedEntry | undefined): void {
    if (recorded?.op !== 'clock.now' || recorded.outcome?.kind !== 'ok') return;
    this.#parts.time.advanceTo(Number(recorded.outcome.value));
  }

  #asRecorded<T>(
    pending: PendingEffect | undefined,
    at: { readonly lane: string } | undefined,
    play: () => T,
  ): T {
    try {
      return play();
    } catch (error) {
      throw this.#writes.refusal({ error, pending, step: at && topLane(at.lane) });
    }
  }
}

/** Whether the lane sleeps. Time advances only when no other lane can continue. */
const isAsleep = (status: LaneStatus): boolean => {
  if (status.kind !== 'parked') return false;
  const { effect, nextPhase, isCancelling } = status.pending;
  return effect.name === 'clock.sleep' && nextPhase === 'end' && !isCancelling;
};

/** A view limited to some of the lanes. */
const narrowed = (
  view: SchedulerView,
  { granted, shows }: { readonly granted: () => number; readonly shows: (status: LaneStatus) => boolean },
): SchedulerView => ({
  get granted() {
    return granted();
  },
  pendingOf: lane => view.pendingOf(lane),
  pending: () =>
    view.statuses().flatMap(status => (status.kind === 'parked' && shows(status) ? [status.pending] : [])),
  isAlive: lane => view.isAlive(lane),
  obstacleOf: pending => view.obstacleOf(pending),
  statuses: () => view.statuses().filter(shows),
});
