import type { Asked, AskedLane } from '../../effects/conductor/scheduler.ts';
import type { Keys } from '../../effects/effect.ts';
import { clockLane } from '../../effects/explore/schedule.ts';
import type { LaneRef } from '../../effects/world.ts';
import { isOutside } from '../outside.ts';

export interface ReadingOptions {
  /** Whether no lane but this one ever touches the key. */
  readonly isPrivate: (key: string, lane: string) => boolean;
  /** Whether what is done to the key comes to the same in whatever order, as long as it is done one after another. */
  readonly commutes: (key: string) => boolean;
  /** What a key is called in moves, if not as it is. */
  readonly nameOf?: ((key: string) => string) | undefined;
  readonly isTimePatient: boolean;
}

/** What is asked for, as exploring sees it: something between lanes, or something that its lane does by itself. */
export type Reading =
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
export function readingOf(asked: Asked, options: ReadingOptions): Reading {
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
