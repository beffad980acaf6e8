import { type Reading, type ReadingOptions, readingOf } from '../../conductor/explore/asked-move.ts';
import type { Asked, AskedLane } from '../conductor/scheduler.ts';
import { topLane } from '../recording/recording.ts';
import type { LaneRef } from '../world.ts';
import { isUpkeep } from './fairness.ts';
import type { Move } from './schedule.ts';

/** What is known of a lane, and what it asks for as a move, made once for each thing that it asks for. */
export interface LaneState {
  readonly lane: AskedLane;
  /** Its last move, or what stands for it in a lane that has made none: where it was forked. */
  causes: readonly number[];
  /** What comes before what it asks for: with what others did to the private keys that it touches. */
  before: readonly number[];
  hasMoved: boolean;
  asked: Asked | undefined;
  phase: Asked['nextPhase'];
  wasDoomed: boolean;
  reading: Reading;
  move: Move;
}

const nowhere: readonly number[] = [];
const mostCauses = 8;

/** Follows lanes from their fork to their join, so that every move knows what made it possible. */
export class LaneStates {
  readonly #options: ReadingOptions;
  readonly #states = new Map<string, LaneState>();
  /** Last moves of lanes that have ended and were not joined. */
  readonly #ended = new Map<string, readonly number[]>();
  /** By step and private key, what came before it was touched last: nothing is decided about that, but it has an order. */
  readonly #touched = new Map<string, readonly number[]>();
  /** The lane of every move. */
  readonly #lanes: string[] = [];

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  /** `made`: how many moves were made. */
  of(asked: Asked, made: number): LaneState {
    const known = this.#states.get(asked.lane.name);
    const { nextPhase, isDoomed } = asked;
    if (
      known?.asked === asked &&
      known.phase === nextPhase &&
      known.wasDoomed === isDoomed &&
      known.lane === asked.lane
    )
      return this.#upToDate(known);
    const state = known?.lane === asked.lane ? known : this.#born(asked.lane, made);
    state.asked = asked;
    state.phase = nextPhase;
    state.wasDoomed = isDoomed;
    state.reading = readingOf(asked, this.#options);
    state.before = this.#before(state);
    state.move = moveOf(asked, state);
    return state;
  }

  moved(state: LaneState, n: number): void {
    this.#lanes[n] = state.lane.name;
    state.causes = [n];
    state.hasMoved = true;
    this.#done(state);
  }

  /** What is folded makes no move, but what it waited for comes before the next one. */
  folded(state: LaneState): void {
    state.causes = this.#before(state);
    if (state.reading.kind === 'folded' && state.reading.joins.length > 0)
      state.causes = this.#causesOf(state, state.reading.joins);
    this.#done(state);
  }

  #done(state: LaneState): void {
    for (const key of state.reading.within) this.#touched.set(ownKey(state.lane, key), state.causes);
    state.asked = undefined;
  }

  /** While it waits, others may touch what it waits for. */
  #upToDate(state: LaneState): LaneState {
    if (state.reading.within.length === 0 || !state.asked) return state;
    const before = this.#before(state);
    if (before.length === state.before.length && before.every((n, at) => n === state.before[at]))
      return state;
    state.before = before;
    state.move = moveOf(state.asked, state);
    return state;
  }

  #before({ lane, causes, reading }: LaneState): readonly number[] {
    let all = causes;
    for (const key of reading.within) all = union(all, this.#touched.get(ownKey(lane, key)) ?? nowhere);
    return all.length > mostCauses ? this.#lastOfEach(all) : all;
  }

  /** What a lane did last comes after all else that it did. */
  #lastOfEach(causes: readonly number[]): readonly number[] {
    const lasts = new Map<string, number>();
    for (const n of causes) {
      const lane = this.#lanes[n] ?? '';
      lasts.set(lane, Math.max(n, lasts.get(lane) ?? n));
    }
    return [...lasts.values()];
  }

  laneEnded(name: string, made: number): void {
    const state = this.#states.get(name);
    if (!state) return;
    this.#states.delete(name);
    const { lane, causes } = state;
    if (lane.birth === 'forked') this.#ended.set(name, causes);
    else if (lane.birth === 'inner' && lane.parent) {
      const outer = this.#states.get(lane.parent.name) ?? this.#born(lane.parent, made);
      outer.causes = union(outer.causes, causes);
      outer.asked = undefined;
    }
  }

  #born(lane: AskedLane, made: number): LaneState {
    const state: LaneState = {
      lane,
      causes: made > 0 ? [made - 1] : nowhere,
      before: nowhere,
      hasMoved: false,
      asked: undefined,
      phase: 'short',
      wasDoomed: false,
      reading: { kind: 'folded', joins: [], within: [] },
      move: { lane: lane.name, op: '', keys: {} },
    };
    this.#states.set(lane.name, state);
    return state;
  }

  #causesOf({ causes }: LaneState, joined: readonly LaneRef[]): readonly number[] {
    let all = causes;
    for (const { name } of joined) {
      all = union(all, this.#ended.get(name) ?? nowhere);
      this.#ended.delete(name);
    }
    return all;
  }
}

function moveOf({ lane, op, effect }: Asked, { reading, before, hasMoved }: LaneState): Move {
  const { keys, isEnd, isUpToOutside } =
    reading.kind === 'shared'
      ? reading
      : { keys: { reads: [], writes: [] }, isEnd: false, isUpToOutside: false };
  // Its own move before needs no mention.
  const after = hasMoved && before.length < 2 ? nowhere : before;
  return {
    lane: lane.name,
    op,
    keys,
    ...(after.length > 0 ? { after } : {}),
    ...(isEnd ? { isEnd } : {}),
    ...(isUpToOutside ? { isUpToOutside } : {}),
    ...(isUpkeep(effect) ? { isUpkeep: true } : {}),
  };
}

/** What is private is so to a step: what others do to a key of that name comes neither before nor after. */
const ownKey = (lane: AskedLane, key: string): string => `${topLane(lane.name)} ${key}`;

const union = (a: readonly number[], b: readonly number[]): readonly number[] =>
  b.length === 0 ? a : [...new Set([...a, ...b])];
