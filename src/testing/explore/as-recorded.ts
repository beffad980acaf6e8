import type { Move, Point, Policy } from '../../conductor/explore/move.ts';
import { whoeverHasTheBaton } from '../../conductor/explore/policies.ts';
import { topLane } from '../../world/recording.ts';
import type { PerformedCase } from './perform-case.ts';
import type { PreparedCase } from './prepared-case.ts';
import type { Turn } from './race-file.ts';
import { firstName } from './step-lives.ts';

/** Whose turn it was when the case was recorded, of all that a schedule decides about, as a trial shows. */
export function recordedTurns({ loaded }: PreparedCase, { trace }: PerformedCase): readonly Turn[] {
  const ops = new Set(trace.map(({ op }) => op));
  return loaded.recording.entries.filter(({ op }) => ops.has(op)).map(({ lane, op }) => ({ lane, op }));
}

/**
 * The order in which a case was recorded, as far as it can be kept: what steps do to each other comes as it came then. Who
 * does something else than in the recording, or was killed and started again, catches up when it is the turn of its step.
 */
export function asRecorded(turns: readonly Turn[]): Policy {
  const left = [...turns];
  const choose = (point: Point): string => {
    for (let wanted = left[0]; wanted; wanted = left[0]) {
      const move = moveFor(wanted, point);
      if (move?.op === wanted.op) {
        left.shift();
        return move.lane;
      }
      const behind = move ? leftOut(left, move) : 1;
      if (move && behind === 0) return move.lane;
      left.shift();
    }
    return whoeverHasTheBaton(point);
  };
  return { isCalm: true, choose };
}

/** What the lane could do now, or else another of its step. */
function moveFor({ lane, op }: Turn, point: Point): Move | undefined {
  const step = stepOf(lane);
  const own = point.enabled.find(each => each.lane === lane);
  if (own) return own;
  const enabled = point.enabled.filter(each => stepOf(each.lane) === step);
  if (enabled.length === 0) return undefined;
  const same = enabled.find(each => each.op === op);
  const baton = whoeverHasTheBaton({ ...point, enabled });
  return same ?? enabled.find(each => each.lane === baton);
}

const stepOf = (lane: string): string => firstName(topLane(lane));

/** How far ahead it is looked whether a lane has left something out. */
const lookAhead = 4;

/** How many of the next turns of the lane come before what it does now. */
function leftOut(left: readonly Turn[], { lane, op }: Move): number {
  const own = left.filter(turn => turn.lane === lane).slice(0, lookAhead);
  return Math.max(
    0,
    own.findIndex(turn => turn.op === op),
  );
}
