import { type Asked, type AskedLane, isOutside } from '../conductor/scheduler.ts';
import type { Keys } from '../effect.ts';
import { topLane } from '../recording/recording.ts';
import type { LaneRef } from '../world.ts';
import { isUpkeep } from './fairness.ts';
import { clockLane, type Move } from './schedule.ts';

interface ReadingOptions {
  /** Whether no lane but this one ever touches the key. */
  readonly isPrivate: (key: string, lane: string) => boolean;
  /** Whether what is done to the key comes to the same in whatever order, as long as it is done one after another. */
  readonly commutes: (key: string) => boolean;
  /** What a key is called in moves, if not as it is. */
  readonly nameOf?: ((key: string) => string) | undefined;
  readonly isTimePatient: boolean;
}

/** What is asked for, as exploring sees it: something between lanes, or something that its lane does by itself. */
type Reading =
  | {
      readonly kind: 'shared';
      readonly keys: Keys;
      readonly isEnd?: boolean;
      readonly isUpToOutside?: boolean;
      /** Private keys that it touches as well. */
      readonly within: readonly string[];
    }
  /** Granted at once, because nobody else can tell when it happened. */
  | { readonly kind: 'folded'; readonly joins: readonly LaneRef[]; readonly within: readonly string[] };

const none: readonly never[] = [];
const folded: Extract<Reading, { readonly kind: 'folded' }> = { kind: 'folded', joins: none, within: none };
const noKeys: Keys = {};

/** Whose order is not decided is folded: effects that touch nothing of others, and neither wait nor cancel. */
function readingOf(asked: Asked, options: ReadingOptions): Reading {
  const { effect, args, nextPhase, isDoomed, lane } = asked;
  if (effect.name === 'lane.join') return { ...folded, joins: args as readonly LaneRef[] };
  if (effect.name === 'lane.cancel') return shared(lane, { writes: cancelKeys(args as readonly LaneRef[]) });
  if (isDoomed && nextPhase !== 'end') return folded;
  if (effect.name === 'clock.now') return options.isTimePatient ? folded : shared(lane, readsClock);
  if (effect.name === 'clock.sleep')
    return nextPhase === 'begin' || isDoomed ? folded : { ...shared(lane, readsClock), isUpToOutside: true };
  const { keys, within } = apart(asked, options);
  if (nextPhase !== 'end') {
    // What has to be enabled by what nobody knows may be enabled by anybody.
    const isFolded = isEmpty(keys) && (effect.enabled === undefined || within.length > 0);
    return isFolded ? { ...folded, within } : shared(lane, keys, within);
  }
  if (isOutside(asked) && !isDoomed) return { ...shared(lane, noKeys), isUpToOutside: true };
  if (effect.awaits) return isDoomed ? folded : shared(lane, effect.awaits.keys(args));
  const isFolded = isEmpty(keys) && (isDoomed || !canBeCancelled(lane));
  return isFolded ? { ...folded, within } : { ...shared(lane, keys, within), isEnd: true };
}

/** The keys by whose order something can come to be different, and those that are private. */
function apart(
  { keys, lane }: Asked,
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

/** Whoever may be cancelled does nothing that is independent of being cancelled. */
function shared(
  lane: AskedLane,
  keys: Keys,
  within: readonly string[] = none,
): Extract<Reading, { readonly kind: 'shared' }> {
  const cancels = cancelKeys(forkedAbove(lane));
  if (cancels.length === 0) return { kind: 'shared', keys, within };
  return { kind: 'shared', keys: { ...keys, reads: [...(keys.reads ?? none), ...cancels] }, within };
}

const cancelKeys = (lanes: readonly LaneRef[]): readonly string[] =>
  lanes.map(({ name }) => `lane.cancel:${name}`);

const canBeCancelled = (lane: AskedLane): boolean =>
  lane.birth === 'forked' || (lane.parent !== undefined && canBeCancelled(lane.parent));

/** Those that somebody has a handle of, to cancel them with all below. */
function forkedAbove(lane: AskedLane): readonly AskedLane[] {
  const above = lane.parent ? forkedAbove(lane.parent) : none;
  return lane.birth === 'forked' ? [...above, lane] : above;
}

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
