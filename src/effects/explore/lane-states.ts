import { isOutside, type PendingEffect, type PendingLane } from '../conductor/scheduler.ts';
import type { Keys } from '../effect.ts';
import { topLane } from '../recording/recording.ts';
import type { LaneRef } from '../world.ts';
import { isUpkeep } from './fairness.ts';
import { clockLane, type Move } from './schedule.ts';

interface ReadingOptions {
  /** Whether only this lane ever touches the key. */
  readonly isPrivate: (key: string, lane: string) => boolean;
  /** Whether the order of accesses to the key never matters, as long as they do not overlap. */
  readonly commutes: (key: string) => boolean;
  /** Name of a key in moves. Defaults to the key. */
  readonly nameOf?: ((key: string) => string) | undefined;
  readonly isTimePatient: boolean;
}

/** A pending effect as the exploration sees it: shared with other lanes, or local to its lane. */
type MoveReading =
  | {
      readonly kind: 'shared';
      readonly keys: Keys;
      readonly isEnd?: boolean;
      readonly isUpToOutside?: boolean;
      /** Private keys that it touches too. */
      readonly within: readonly string[];
    }
  /** Granted at once, because no other lane can observe when it happened. */
  | { readonly kind: 'folded'; readonly joins: readonly LaneRef[]; readonly within: readonly string[] };

const none: readonly never[] = [];
const folded: Extract<MoveReading, { readonly kind: 'folded' }> = {
  kind: 'folded',
  joins: none,
  within: none,
};
const noKeys: Keys = {};

/** Classifies a pending effect. Effects that touch nothing shared and neither wait nor cancel are folded. */
function readingOf(pending: PendingEffect, options: ReadingOptions): MoveReading {
  const { effect, args, nextPhase, isCancelling, lane } = pending;
  if (effect.name === 'lane.join') return { ...folded, joins: args as readonly LaneRef[] };
  if (effect.name === 'lane.cancel') return shared(lane, { writes: cancelKeys(args as readonly LaneRef[]) });
  if (isCancelling && nextPhase !== 'end') return folded;
  if (effect.name === 'clock.now') return options.isTimePatient ? folded : shared(lane, readsClock);
  if (effect.name === 'clock.sleep')
    return nextPhase === 'begin' || isCancelling
      ? folded
      : { ...shared(lane, readsClock), isUpToOutside: true };
  const { keys, within } = apart(pending, options);
  if (nextPhase !== 'end') {
    // A condition without keys may be enabled by any lane, so the effect is not folded.
    const isFolded = isEmpty(keys) && (effect.enabled === undefined || within.length > 0);
    return isFolded ? { ...folded, within } : shared(lane, keys, within);
  }
  if (isOutside(pending) && !isCancelling) return { ...shared(lane, noKeys), isUpToOutside: true };
  if (effect.awaits) return isCancelling ? folded : shared(lane, effect.awaits.keys(args));
  const isFolded = isEmpty(keys) && (isCancelling || !canBeCancelled(lane));
  return isFolded ? { ...folded, within } : { ...shared(lane, keys, within), isEnd: true };
}

/** Splits the keys into those whose order can matter and those that are private. */
function apart(
  { keys, lane }: PendingEffect,
  { isPrivate, commutes, nameOf }: ReadingOptions,
): { readonly keys: Keys; readonly within: readonly string[] } {
  const within: string[] = [];
  const matters = (key: string): boolean => {
    if (commutes(key)) return false;
    if (!isPrivate(key, lane.name)) return true;
    within.push(key);
    return false;
  };
  const writes = (keys.writes ?? none).filter(matters);
  const reads = (keys.reads ?? none).filter(matters);
  if (nameOf) return { keys: { reads: reads.map(nameOf), writes: writes.map(nameOf) }, within };
  const isWhole =
    writes.length === (keys.writes ?? none).length && reads.length === (keys.reads ?? none).length;
  return { keys: isWhole ? keys : { reads, writes }, within };
}

const isEmpty = ({ reads = none, writes = none }: Keys): boolean => reads.length === 0 && writes.length === 0;

const readsClock: Keys = { reads: [clockLane] };

/** In a lane that may be cancelled, every move depends on the cancel, so it reads the keys of the cancel. */
function shared(
  lane: PendingLane,
  keys: Keys,
  within: readonly string[] = none,
): Extract<MoveReading, { readonly kind: 'shared' }> {
  const cancels = cancelKeys(forkedAbove(lane));
  if (cancels.length === 0) return { kind: 'shared', keys, within };
  return { kind: 'shared', keys: { ...keys, reads: [...(keys.reads ?? none), ...cancels] }, within };
}

const cancelKeys = (lanes: readonly LaneRef[]): readonly string[] =>
  lanes.map(({ name }) => `lane.cancel:${name}`);

const canBeCancelled = (lane: PendingLane): boolean =>
  lane.birth === 'forked' || (lane.parent !== undefined && canBeCancelled(lane.parent));

/** Returns the lane and its ancestors that were forked: another lane can cancel them with all lanes below. */
function forkedAbove(lane: PendingLane): readonly PendingLane[] {
  const above = lane.parent ? forkedAbove(lane.parent) : none;
  return lane.birth === 'forked' ? [...above, lane] : above;
}

/** State of a lane, with its pending effect as a move. The move is created once per pending effect. */
export interface LaneState {
  readonly lane: PendingLane;
  /** Position of its last move, or of its fork if it has made none. */
  causes: readonly number[];
  /** Positions of the moves before the pending one, including accesses of other lanes to its private keys. */
  before: readonly number[];
  hasMoved: boolean;
  pending: PendingEffect | undefined;
  phase: PendingEffect['nextPhase'];
  wasCancelling: boolean;
  reading: MoveReading;
  move: Move;
}

const nowhere: readonly number[] = [];
const mostCauses = 8;

/** Tracks lanes from fork to join, so that every move knows the moves that made it possible. */
export class LaneStates {
  readonly #options: ReadingOptions;
  readonly #states = new Map<string, LaneState>();
  /** Last moves of lanes that have ended and were not joined. */
  readonly #ended = new Map<string, readonly number[]>();
  /** Causes of the last access to a private key, by step and key. Such accesses need no decision, but have an order. */
  readonly #touched = new Map<string, readonly number[]>();
  /** Lane of every move. */
  readonly #lanes: string[] = [];

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  /** Returns the state of the lane. `made` is the number of moves so far. */
  of(pending: PendingEffect, made: number): LaneState {
    const known = this.#states.get(pending.lane.name);
    const { nextPhase, isCancelling } = pending;
    if (
      known?.pending === pending &&
      known.phase === nextPhase &&
      known.wasCancelling === isCancelling &&
      known.lane === pending.lane
    )
      return this.#upToDate(known);
    const state = known?.lane === pending.lane ? known : this.#born(pending.lane, made);
    state.pending = pending;
    state.phase = nextPhase;
    state.wasCancelling = isCancelling;
    state.reading = readingOf(pending, this.#options);
    state.before = this.#before(state);
    state.move = moveOf(pending, state);
    return state;
  }

  moved(state: LaneState, n: number): void {
    this.#lanes[n] = state.lane.name;
    state.causes = [n];
    state.hasMoved = true;
    this.#done(state);
  }

  /** Records a folded effect. It is not a move, but its causes come before the next move. */
  folded(state: LaneState): void {
    state.causes = this.#before(state);
    if (state.reading.kind === 'folded' && state.reading.joins.length > 0)
      state.causes = this.#causesOf(state, state.reading.joins);
    this.#done(state);
  }

  #done(state: LaneState): void {
    for (const key of state.reading.within) this.#touched.set(ownKey(state.lane, key), state.causes);
    state.pending = undefined;
  }

  /** Updates a waiting lane: other lanes may have touched its private keys meanwhile. */
  #upToDate(state: LaneState): LaneState {
    if (state.reading.within.length === 0 || !state.pending) return state;
    const before = this.#before(state);
    if (before.length === state.before.length && before.every((n, at) => n === state.before[at]))
      return state;
    state.before = before;
    state.move = moveOf(state.pending, state);
    return state;
  }

  #before({ lane, causes, reading }: LaneState): readonly number[] {
    let all = causes;
    for (const key of reading.within) all = union(all, this.#touched.get(ownKey(lane, key)) ?? nowhere);
    return all.length > mostCauses ? this.#lastOfEach(all) : all;
  }

  /** Keeps only the last cause of each lane, which implies the earlier ones. */
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
      outer.pending = undefined;
    }
  }

  #born(lane: PendingLane, made: number): LaneState {
    const state: LaneState = {
      lane,
      causes: made > 0 ? [made - 1] : nowhere,
      before: nowhere,
      hasMoved: false,
      pending: undefined,
      phase: 'short',
      wasCancelling: false,
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

function moveOf({ lane, op, effect }: PendingEffect, { reading, before, hasMoved }: LaneState): Move {
  const { keys, isEnd, isUpToOutside } =
    reading.kind === 'shared'
      ? reading
      : { keys: { reads: [], writes: [] }, isEnd: false, isUpToOutside: false };
  // The previous move of the same lane is implied.
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

/** Private keys belong to a step: accesses of other steps to a key of the same name are unrelated. */
const ownKey = (lane: PendingLane, key: string): string => `${topLane(lane.name)} ${key}`;

const union = (a: readonly number[], b: readonly number[]): readonly number[] =>
  b.length === 0 ? a : [...new Set([...a, ...b])];
