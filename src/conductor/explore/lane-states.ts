import type { LaneRef } from '../../world/world.ts';
import type { Asked, AskedLane } from '../player.ts';
import { type Reading, type ReadingOptions, readingOf } from './asked-move.ts';
import type { Move } from './move.ts';

/** What is known of a lane, and what it asks for as a move, made once for each thing that it asks for. */
export interface LaneState {
  readonly lane: AskedLane;
  /** Its last move, or what stands for it in a lane that has made none: where it was forked. */
  causes: readonly number[];
  hasMoved: boolean;
  asked: Asked | undefined;
  phase: Asked['nextPhase'];
  wasDoomed: boolean;
  reading: Reading;
  move: Move;
}

const nowhere: readonly number[] = [];

/** Follows lanes from their fork to their join, so that every move knows what made it possible. */
export class LaneStates {
  readonly #options: ReadingOptions;
  readonly #states = new Map<string, LaneState>();
  /** Last moves of lanes that have ended and were not joined. */
  readonly #ended = new Map<string, readonly number[]>();

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
      return known;
    const state = known?.lane === asked.lane ? known : this.#born(asked.lane, made);
    state.asked = asked;
    state.phase = nextPhase;
    state.wasDoomed = isDoomed;
    state.reading = readingOf(asked, this.#options);
    state.move = moveOf(asked, state);
    return state;
  }

  moved(state: LaneState, n: number): void {
    state.causes = [n];
    state.hasMoved = true;
    state.asked = undefined;
  }

  /** What is folded makes no move, but what it waited for comes before the next one. */
  folded(state: LaneState): void {
    if (state.reading.kind === 'folded' && state.reading.joins.length > 0)
      state.causes = this.#causesOf(state, state.reading.joins);
    state.asked = undefined;
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
      hasMoved: false,
      asked: undefined,
      phase: 'short',
      wasDoomed: false,
      reading: { kind: 'folded', joins: [] },
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

function moveOf({ lane, op }: Asked, { reading, causes, hasMoved }: LaneState): Move {
  const { keys, isEnd } =
    reading.kind === 'shared' ? reading : { keys: { reads: [], writes: [] }, isEnd: false };
  // Its own move before needs no mention.
  const after = hasMoved && causes.length < 2 ? nowhere : causes;
  return {
    lane: lane.name,
    op,
    keys,
    ...(after.length > 0 ? { after } : {}),
    ...(isEnd ? { isEnd } : {}),
  };
}

const union = (a: readonly number[], b: readonly number[]): readonly number[] =>
  b.length === 0 ? a : [...new Set([...a, ...b])];
