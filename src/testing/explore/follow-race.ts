import type { Turn } from '../../cases/explore/race-file.ts';
import { whoeverHasTheBaton } from '../../effects/explore/policies.ts';
import type { Point, Policy } from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';

/** Follows a schedule that was found in code that has changed since. */
export interface Following {
  readonly policy: Policy;
  /** What the schedule says and nobody does any more, as far as it went. */
  readonly missing: readonly Turn[];
}

/**
 * Whoever waits where the schedule lets it go on is held back by something that was not there before, which is what mends
 * a race: its turn is left out. What is new is done when its lane has its turn. After the last switch between steps
 * everything comes by itself, and other things where the race is mended: what is not done there is not missed.
 */
export function followRace(turns: readonly Turn[], isCalm: boolean): Following {
  const missing: Turn[] = [];
  const left = [...turns];
  const after = new Set(turns.slice(lastSwitch(turns) + 1));
  const miss = (turn: Turn) => {
    if (!after.has(turn)) missing.push(turn);
  };
  const choose = (point: Point): string => {
    for (let wanted = left[0]; wanted; wanted = left[0]) {
      const { lane, op } = wanted;
      const move = point.enabled.find(each => each.lane === lane);
      if (move?.op === op) {
        left.shift();
        return lane;
      }
      if (!move) {
        left.shift();
        if (!point.waiting.some(each => each.lane === lane)) miss(wanted);
        continue;
      }
      const later = left.findIndex(each => each.lane === lane && each.op === move.op);
      if (later < 0) return lane;
      const gone = left.slice(0, later).filter(each => each.lane === lane);
      for (const each of gone) {
        miss(each);
        left.splice(left.indexOf(each), 1);
      }
    }
    return whoeverHasTheBaton(point);
  };
  return { policy: { isCalm, choose }, missing };
}

/** Where a step goes on that did not go on right before; 0 if there is only one. */
const lastSwitch = (turns: readonly Turn[]): number =>
  Math.max(
    0,
    turns.findLastIndex(({ lane }, n) => n > 0 && topLane(lane) !== topLane(turns[n - 1]?.lane ?? '')),
  );
