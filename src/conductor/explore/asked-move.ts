import type { Keys } from '../../world/effect.ts';
import type { LaneRef } from '../../world/world.ts';
import { isOutside } from '../outside.ts';
import type { Asked, AskedLane } from '../player.ts';
import { clockLane } from './move.ts';

export interface ReadingOptions {
  /** Whether no lane but this one ever touches the key. */
  readonly isPrivate: (key: string, lane: string) => boolean;
  readonly isTimePatient: boolean;
}

/** What is asked for, as exploring sees it: something between lanes, or something that its lane does by itself. */
export type Reading =
  | { readonly kind: 'shared'; readonly keys: Keys; readonly isEnd: boolean }
  /** Granted at once, because nobody else can tell when it happened. */
  | { readonly kind: 'folded'; readonly joins: readonly LaneRef[] };

const folded: Reading = { kind: 'folded', joins: [] };
const noKeys: Keys = {};

/** Whose order is not decided is folded: effects that touch nothing of others, and neither wait nor cancel. */
export function readingOf(asked: Asked, options: ReadingOptions): Reading {
  const { effect, args, nextPhase, isDoomed, lane } = asked;
  if (effect.name === 'lane.join') return { kind: 'folded', joins: args as readonly LaneRef[] };
  if (effect.name === 'lane.cancel') return shared(lane, { writes: cancelKeys(args as readonly LaneRef[]) });
  if (isDoomed && nextPhase !== 'end') return folded;
  if (effect.name === 'clock.now') return options.isTimePatient ? folded : shared(lane, readsClock);
  if (effect.name === 'clock.sleep')
    return nextPhase === 'begin' || isDoomed ? folded : shared(lane, readsClock);
  if (nextPhase !== 'end') {
    const isFolded = effect.enabled === undefined && areMine(asked.keys, lane, options);
    return isFolded ? folded : shared(lane, asked.keys);
  }
  if (isOutside(asked) && !isDoomed) return shared(lane, noKeys);
  if (effect.awaits) return isDoomed ? folded : shared(lane, effect.awaits.keys(args));
  const isFolded = areMine(asked.keys, lane, options) && (isDoomed || !canBeCancelled(lane));
  return isFolded ? folded : shared(lane, asked.keys, true);
}

const readsClock: Keys = { reads: [clockLane] };

/** Whoever may be cancelled does nothing that is independent of being cancelled. */
function shared(lane: AskedLane, keys: Keys, isEnd = false): Reading {
  const cancels = cancelKeys(forkedAbove(lane));
  if (cancels.length === 0) return { kind: 'shared', keys, isEnd };
  return { kind: 'shared', keys: { ...keys, reads: [...(keys.reads ?? []), ...cancels] }, isEnd };
}

function areMine({ reads = [], writes = [] }: Keys, lane: AskedLane, { isPrivate }: ReadingOptions): boolean {
  for (const key of writes) if (!isPrivate(key, lane.name)) return false;
  for (const key of reads) if (!isPrivate(key, lane.name)) return false;
  return true;
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

const none: readonly AskedLane[] = [];
