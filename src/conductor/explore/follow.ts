import { RepriseError } from '../../core/errors.ts';
import type { Move, Point, Policy } from './move.ts';
import { whoeverHasTheBaton } from './policies.ts';

/** A move of a schedule that is followed; without `op`, whatever the lane does then. */
export interface Followed {
  readonly lane: string;
  readonly op?: string;
}

export interface FollowOptions {
  /** As when the schedule was found. */
  readonly isCalm?: boolean;
}

/** The schedule and nothing else. Throws REPLAY_DIVERGED where the program does not do what the schedule says. */
export function followStrictly(order: readonly Followed[], { isCalm = false }: FollowOptions = {}): Policy {
  return {
    isCalm,
    choose: point => {
      const wanted = order[point.n];
      const move = wanted && point.enabled.find(({ lane }) => lane === wanted.lane);
      if (move && (wanted.op === undefined || wanted.op === move.op)) return move.lane;
      throw new RepriseError('REPLAY_DIVERGED', misfit(point, wanted));
    },
  };
}

function misfit({ n, enabled, waiting }: Point, wanted: Followed | undefined): string {
  const could = `what can be done is ${enabled.map(described).join(', ') || 'nothing'}`;
  if (!wanted) return `the schedule ends after ${n} moves, and the program does not; ${could}`;
  const says = `move ${n + 1} of the schedule is ${described(wanted)}`;
  const at = [...enabled, ...waiting].find(({ lane }) => lane === wanted.lane);
  if (!at) return `${says}, and there is no such lane now; ${could}`;
  const isWaiting = waiting.includes(at);
  return `${says}, and ${at.lane} ${isWaiting ? 'waits' : 'is'} at ${at.op}; ${could}`;
}

const described = ({ lane, op }: Followed | Move): string => (op === undefined ? lane : `${lane} ${op}`);

/**
 * As much of the schedule as the program can do: moves of lanes that cannot go on are left out, and after its end no
 * lane is interrupted. For looking for a simpler schedule that fails like this one.
 */
export function followLeniently(
  order: readonly { readonly lane: string }[],
  { isCalm = false }: FollowOptions = {},
): Policy {
  let at = 0;
  return {
    isCalm,
    choose: point => {
      for (; at < order.length; at++) {
        const wanted = order[at]?.lane;
        if (!point.enabled.some(({ lane }) => lane === wanted)) continue;
        at++;
        return wanted ?? '';
      }
      return whoeverHasTheBaton(point);
    },
  };
}
