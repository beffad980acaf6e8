import { RepriseError } from '../../core/errors.ts';
import {
  type Asked,
  canEndByItself,
  type Happening,
  type Player,
  type PlayerFactory,
  type View,
} from '../conductor/scheduler.ts';
import type { Outcome } from '../effect.ts';
import type { VirtualTime } from '../schedulers/round-robin.ts';
import { deadlock, Fairness, type FairnessOptions, livelock, type Wait } from './fairness.ts';
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
  /** When it begins; 0 unless it is said. */
  readonly startMs?: number;
  /** Keys that no lane but this one ever touches: what touches nothing else is not decided about. */
  readonly isPrivate?: (key: string, lane: string) => boolean;
  /** Keys about whose order nothing is decided, because all orders come to the same. */
  readonly commutes?: (key: string) => boolean;
  /** What a key is called in moves, so that it is the same wherever a schedule is played. */
  readonly nameOf?: (key: string) => string;
  /** Whether anything may happen to the program at all is up to the policy. */
  readonly outside?: readonly OutsideLane[];
}

/** One schedule, as a policy chooses it. To be used once. */
export interface Exploring {
  readonly player: PlayerFactory;
  readonly trace: readonly Move[];
  /** What lanes that have not ended would do next. */
  left(): readonly Move[];
  /** How many effects were granted. */
  entries(): number;
}

/**
 * Lets a policy choose who goes on. Everything is performed, but for sleeping: time is virtual. About what only its own
 * lane can tell apart nothing is decided.
 */
export function exploringPlayer(options: ExploringOptions): Exploring {
  let player: ExploringPlayer | undefined;
  const trace: Move[] = [];
  return {
    player: view => {
      player = new ExploringPlayer(options, trace, view);
      return player;
    },
    trace,
    left: () => player?.left() ?? [],
    entries: () => player?.entries ?? 0,
  };
}

class ExploringPlayer implements Player {
  readonly #options: ExploringOptions;
  readonly #trace: Move[];
  readonly #view: View;
  readonly #states: LaneStates;
  readonly #fairness: Fairness;
  #now: number;
  /** What was granted last, and might not be granted again now. */
  #taken: Asked | undefined;

  constructor(options: ExploringOptions, trace: Move[], view: View) {
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

  next(): Asked | Happening {
    this.#noticeTaken();
    for (;;) {
      const asked = this.#view.asked();
      const enabled: Move[] = [];
      const waiting: Move[] = [];
      for (const one of asked) {
        const state = this.#states.of(one, this.#trace.length);
        if (this.#view.obstacleOf(one)) waiting.push(state.move);
        else if (state.reading.kind === 'folded') return this.#fold(one, state);
        else enabled.push(state.move);
      }
      const dueMs = this.#nextDue(asked);
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

  performs({ effect }: Asked): boolean {
    return effect.name !== 'clock.sleep';
  }

  canEnd(asked: Asked): boolean {
    return asked.effect.name === 'clock.sleep' ? Number(asked.args) <= this.#now : canEndByItself(asked);
  }

  answerOf(asked: Asked): Outcome | 'perform' {
    // Cancelled while it waited, it has done nothing.
    if (asked.isDoomed && asked.effect.awaits) return { kind: 'cancelled' };
    if (this.performs(asked)) return 'perform';
    return asked.isDoomed ? { kind: 'cancelled' } : { kind: 'ok', value: undefined };
  }

  judge(_asked: Asked, _place: unknown, outcome: Outcome): Outcome {
    return outcome;
  }

  laneEnded(lane: string): void {
    this.#fairness.progressed();
    this.#states.laneEnded(lane, this.#trace.length);
  }

  finished(): void {}

  left(): readonly Move[] {
    return this.#view.asked().map(asked => this.#states.of(asked, this.#trace.length).move);
  }

  #choose({ enabled, waiting, outside }: Choice): string {
    for (const { move } of outside) enabled.push(move);
    if (outside.length > 0 || enabled.at(-1) === tick) enabled.sort(byLane);
    const point: Point = { n: this.#trace.length, enabled, waiting, last: this.#trace.at(-1)?.lane };
    const lane = this.#options.policy.choose(point);
    const move = enabled.find(one => one.lane === lane);
    if (!move)
      throw new RepriseError('INTERNAL', `move ${point.n}: a policy chose ${lane}, which cannot go on`);
    this.#trace.push(move);
    return lane;
  }

  #go(lane: string): Asked {
    const asked = this.#view.askedBy(lane);
    if (!asked) throw new RepriseError('INTERNAL', `lane ${lane} asks for nothing`);
    this.#fairness.granted(asked);
    this.#states.moved(this.#states.of(asked, this.#trace.length), this.#trace.length - 1);
    if (mayBeTaken(asked)) this.#taken = asked;
    return asked;
  }

  #noticeTaken(): void {
    const taken = this.#taken;
    if (!taken) return;
    this.#taken = undefined;
    const last = this.#trace.at(-1);
    const isFree = (taken.effect.awaits?.isOver ?? taken.effect.enabled)?.(taken.args);
    if (last && isFree === false) this.#trace[this.#trace.length - 1] = { ...last, isExclusive: true };
  }

  #fold(asked: Asked, state: LaneState): Asked {
    this.#states.folded(state);
    this.#fairness.folded(asked);
    if (this.#fairness.foldsTooMuch)
      throw livelock(`${asked.lane.name} does nothing but ${asked.op} and the like`, this.#waits());
    return asked;
  }

  /** When the next one wakes up who sleeps now. */
  #nextDue(asked: readonly Asked[]): number | undefined {
    let due: number | undefined;
    for (const { effect, nextPhase, args, isDoomed } of asked) {
      if (effect.name !== 'clock.sleep' || nextPhase !== 'end' || isDoomed) continue;
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

  #waits(): readonly Wait[] {
    return this.#view.asked().map(asked => ({ asked, obstacle: this.#view.obstacleOf(asked) }));
  }
}

interface OutsideChoice {
  readonly move: Move;
  readonly happening: OutsideMove;
}

interface Choice {
  readonly enabled: Move[];
  readonly waiting: readonly Move[];
  readonly outside: readonly OutsideChoice[];
}

/** Whether what it is about to do had to wait for something. */
const mayBeTaken = ({ effect, nextPhase }: Asked): boolean =>
  nextPhase === 'end' ? effect.awaits !== undefined : effect.enabled !== undefined;

const noMoves: readonly never[] = [];
const tick: Move = { lane: clockLane, op: 'tick', keys: { writes: [clockLane] }, isOutside: true };
const byLane = (a: Move, b: Move): number => (a.lane < b.lane ? -1 : 1);
