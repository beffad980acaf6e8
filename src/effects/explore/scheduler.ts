import { RepriseError } from '../../core/index.ts';
import {
  canEndByItself,
  type Happening,
  type PendingEffect,
  type Scheduler,
  type SchedulerFactory,
  type SchedulerView,
} from '../conductor/scheduler.ts';
import type { EffectOutcome } from '../effect.ts';
import type { VirtualTime } from '../schedulers/round-robin.ts';
import { deadlock, Fairness, type FairnessOptions, type LaneWait, livelock } from './fairness.ts';
import { type LaneState, LaneStates } from './lane-states.ts';
import {
  clockLane,
  type Move,
  type OutsideLane,
  type OutsideMove,
  type Point,
  type Policy,
} from './schedule.ts';

export interface ExploringOptions extends FairnessOptions {
  readonly policy: Policy;
  readonly time: VirtualTime;
  /** Start time. Defaults to 0. */
  readonly startMs?: number;
  /** Whether only this lane ever touches the key. Effects that touch only private keys need no decision. */
  readonly isPrivate?: (key: string, lane: string) => boolean;
  /** Whether the order of accesses to the key never matters, so that it needs no decision. */
  readonly commutes?: (key: string) => boolean;
  /** Name of a key in moves, the same on every machine. */
  readonly nameOf?: (key: string) => string;
  /** Sources of outside events. Calm policies never use them. */
  readonly outside?: readonly OutsideLane[];
}

/** One schedule, chosen by a policy. Must be used only once. */
export interface ExploredSchedule {
  readonly scheduler: SchedulerFactory;
  readonly trace: readonly Move[];
  /** Returns the pending moves of lanes that have not ended. */
  left(): readonly Move[];
  /** Returns the number of effects granted. */
  entries(): number;
}

/**
 * Creates a scheduler that lets a policy choose the next lane. Every effect except a sleep is performed; time is
 * virtual. Effects whose timing no other lane can observe need no decision.
 */
export function exploringScheduler(options: ExploringOptions): ExploredSchedule {
  let scheduler: ExploringScheduler | undefined;
  const trace: Move[] = [];
  return {
    scheduler: view => {
      scheduler = new ExploringScheduler(options, trace, view);
      return scheduler;
    },
    trace,
    left: () => scheduler?.left() ?? [],
    entries: () => scheduler?.entries ?? 0,
  };
}

class ExploringScheduler implements Scheduler {
  readonly #options: ExploringOptions;
  readonly #trace: Move[];
  readonly #view: SchedulerView;
  readonly #states: LaneStates;
  readonly #fairness: Fairness;
  #now: number;
  /** The last granted effect, if it may have disabled itself. */
  #taken: PendingEffect | undefined;

  constructor(options: ExploringOptions, trace: Move[], view: SchedulerView) {
    this.#options = options;
    this.#trace = trace;
    this.#view = view;
    this.#now = options.startMs ?? 0;
    this.#states = new LaneStates({
      isPrivate: options.isPrivate ?? (() => false),
      commutes: options.commutes ?? (() => false),
      nameOf: options.nameOf,
      isTimePatient: options.policy.isCalm ?? false,
    });
    this.#fairness = new Fairness(options);
  }

  get entries(): number {
    return this.#view.granted;
  }

  next(): PendingEffect | Happening {
    this.#noticeTaken();
    for (;;) {
      const pending = this.#view.pending();
      const enabled: Move[] = [];
      const waiting: Move[] = [];
      for (const one of pending) {
        const state = this.#states.of(one, this.#trace.length);
        if (this.#view.obstacleOf(one)) waiting.push(state.move);
        else if (state.reading.kind === 'folded') return this.#fold(one, state);
        else enabled.push(state.move);
      }
      const dueMs = this.#nextDue(pending);
      const outside = this.#outsideMoves(enabled);
      if (dueMs !== undefined && this.#mayTick(enabled)) enabled.push(tick);
      if (enabled.length === 0 && outside.every(({ happening }) => happening.isOptional))
        throw deadlock(this.#waits());
      if (this.#fairness.isTooLong(this.#trace.length))
        throw livelock(`${this.#trace.length} moves`, this.#waits());
      const lane = this.#choose({ enabled, waiting, outside });
      if (lane !== clockLane || dueMs === undefined) {
        const happening = outside.find(({ move }) => move.lane === lane)?.happening;
        return happening ? () => happening.act() : this.#go(lane);
      }
      this.#now = dueMs;
      this.#options.time.advanceTo(dueMs);
      this.#fairness.ticked();
    }
  }

  performs({ effect }: PendingEffect): boolean {
    return effect.name !== 'clock.sleep';
  }

  canEnd(pending: PendingEffect): boolean {
    return pending.effect.name === 'clock.sleep'
      ? Number(pending.args) <= this.#now
      : canEndByItself(pending);
  }

  answerOf(pending: PendingEffect): EffectOutcome | 'perform' {
    // An effect cancelled during its wait has done nothing.
    if (pending.isCancelling && pending.effect.awaits) return { kind: 'cancelled' };
    if (this.performs(pending)) return 'perform';
    return pending.isCancelling ? { kind: 'cancelled' } : { kind: 'ok', value: undefined };
  }

  judge(_asked: PendingEffect, _place: unknown, outcome: EffectOutcome): EffectOutcome {
    return outcome;
  }

  laneEnded(lane: string): void {
    this.#fairness.progressed();
    this.#states.laneEnded(lane, this.#trace.length);
  }

  finished(): void {}

  left(): readonly Move[] {
    return this.#view.pending().map(pending => this.#states.of(pending, this.#trace.length).move);
  }

  #choose({ enabled, waiting, outside }: ScheduleChoice): string {
    for (const { move } of outside) enabled.push(move);
    if (outside.length > 0 || enabled.at(-1) === tick) enabled.sort(byLane);
    const point: Point = { n: this.#trace.length, enabled, waiting, last: this.#trace.at(-1)?.lane };
    const lane = this.#options.policy.choose(point);
    const move = enabled.find(one => one.lane === lane);
    if (!move)
      throw new RepriseError('INTERNAL', `move ${point.n}: the policy chose ${lane}, which cannot continue`);
    this.#trace.push(move);
    return lane;
  }

  #go(lane: string): PendingEffect {
    const pending = this.#view.pendingOf(lane);
    if (!pending) throw new RepriseError('INTERNAL', `lane ${lane} has no pending effect`);
    this.#fairness.granted(pending);
    this.#states.moved(this.#states.of(pending, this.#trace.length), this.#trace.length - 1);
    if (mayBeTaken(pending)) this.#taken = pending;
    return pending;
  }

  #noticeTaken(): void {
    const taken = this.#taken;
    if (!taken) return;
    this.#taken = undefined;
    const last = this.#trace.at(-1);
    const isFree = (taken.effect.awaits?.isOver ?? taken.effect.enabled)?.(taken.args);
    if (last && isFree === false) this.#trace[this.#trace.length - 1] = { ...last, isExclusive: true };
  }

  #fold(pending: PendingEffect, state: LaneState): PendingEffect {
    this.#states.folded(state);
    this.#fairness.folded(pending);
    if (this.#fairness.foldsTooMuch)
      throw livelock(`${pending.lane.name} keeps calling ${pending.op} or similar effects`, this.#waits());
    return pending;
  }

  /** Returns the next wake-up time of a sleeping lane. */
  #nextDue(pending: readonly PendingEffect[]): number | undefined {
    let due: number | undefined;
    for (const { effect, nextPhase, args, isCancelling } of pending) {
      if (effect.name !== 'clock.sleep' || nextPhase !== 'end' || isCancelling) continue;
      const at = Number(args);
      if (at > this.#now && (due === undefined || at < due)) due = at;
    }
    return due;
  }

  #mayTick(enabled: readonly Move[]): boolean {
    if (enabled.length === 0) return this.#fairness.mayTick;
    return !this.#options.policy.isCalm && this.#fairness.mayTickMeanwhile;
  }

  #outsideMoves(enabled: readonly Move[]): readonly OutsideChoice[] {
    const { outside, policy } = this.#options;
    if (!outside || policy.isCalm) return noMoves;
    const view = {
      n: this.#trace.length,
      entries: this.#view.granted,
      last: this.#trace.at(-1),
      enabled,
      isAlive: (lane: string) => this.#view.isAlive(lane),
    };
    return outside.flatMap(lane => {
      const happening = lane.next(view);
      if (!happening) return [];
      return [
        { happening, move: { lane: lane.lane, op: happening.op, keys: happening.keys, isOutside: true } },
      ];
    });
  }

  #waits(): readonly LaneWait[] {
    return this.#view.pending().map(pending => ({ pending, obstacle: this.#view.obstacleOf(pending) }));
  }
}

interface OutsideChoice {
  readonly move: Move;
  readonly happening: OutsideMove;
}

interface ScheduleChoice {
  readonly enabled: Move[];
  readonly waiting: readonly Move[];
  readonly outside: readonly OutsideChoice[];
}

/** Whether the effect has a condition that it may make false. */
const mayBeTaken = ({ effect, nextPhase }: PendingEffect): boolean =>
  nextPhase === 'end' ? effect.awaits !== undefined : effect.enabled !== undefined;

const noMoves: readonly never[] = [];
const tick: Move = { lane: clockLane, op: 'tick', keys: { writes: [clockLane] }, isOutside: true };
const byLane = (a: Move, b: Move): number => (a.lane < b.lane ? -1 : 1);
