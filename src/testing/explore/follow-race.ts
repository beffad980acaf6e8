import type { Point, Policy } from '../../conductor/explore/move.ts';
import { whoeverHasTheBaton } from '../../conductor/explore/policies.ts';
import type { Turn } from './race-file.ts';

/** Follows a schedule that was found in code that has changed since. */
export interface Following {
  readonly policy: Policy;
  /** What the schedule says and nobody does any more, as far as it went. */
  readonly missing: readonly Turn[];
}

/**
 * Whoever waits where the schedule lets it go on is held back by something that was not there before, which is what mends
 * a race: its turn is left out. What is new is done when its lane has its turn.
 */
export function followRace(turns: readonly Turn[], isCalm: boolean): Following {
  const missing: Turn[] = [];
  const left = [...turns];
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
        if (!point.waiting.some(each => each.lane === lane)) missing.push(wanted);
        continue;
      }
      const later = left.findIndex(each => each.lane === lane && each.op === move.op);
      if (later < 0) return lane;
      const gone = left.slice(0, later).filter(each => each.lane === lane);
      missing.push(...gone);
      for (const each of gone) left.splice(left.indexOf(each), 1);
    }
    return whoeverHasTheBaton(point);
  };
  return { policy: { isCalm, choose }, missing };
}
