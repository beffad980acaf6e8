import { RepriseError } from '../../core/errors.ts';
import { whoeverHasTheBaton } from '../../effects/explore/policies.ts';
import type { Move, Point, Policy } from '../../effects/explore/schedule.ts';

/** A move of a schedule that is followed; without `op`, whatever the lane does then. */
export interface Followed {
  readonly lane: string;
  readonly op?: string;
}

export interface FollowOptions {
  /** As when the schedule was found. */
  readonly isCalm?: boolean;
}

/**
 * The schedule and nothing else, or, with `goesOn`, no interruption after its end. Throws REPLAY_DIVERGED where the program
 * does not do what the schedule says.
 */
export function followStrictly(
  order: readonly Followed[],
  { isCalm = false, goesOn = false }: FollowOptions & { readonly goesOn?: boolean } = {},
): Policy {
  return {
    isCalm,
    choose: point => {
      const wanted = order[point.n];
      if (!wanted && goesOn) return whoeverHasTheBaton(point);
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

/** A stretch of a schedule in which lanes go on that count as one. */
export interface Turn {
  readonly of: string;
  readonly moves: readonly Pick<Move, 'lane' | 'isUpkeep'>[];
}

/**
 * Each turn lasts until its lanes have done as much as in all their turns so far: what they could not do in one of them
 * they do in the next. Signs of life do not count. After the last turn no lane is interrupted.
 */
export function followTurns(
  turns: readonly Turn[],
  { isCalm = false, ofLane }: FollowOptions & { readonly ofLane: (lane: string) => string },
): Policy {
  const wanted = new Map<string, string[]>();
  const goals = turns.map(({ of, moves }) => {
    const lanes = wanted.get(of) ?? [];
    wanted.set(of, lanes);
    for (const { lane, isUpkeep } of moves) if (!isUpkeep) lanes.push(lane);
    return lanes.length;
  });
  const made = new Map<string, number>();
  let at = 0;
  return {
    isCalm,
    choose: point => {
      for (let turn = turns[at]; turn; turn = turns[++at]) {
        const { of } = turn;
        const done = made.get(of) ?? 0;
        if (done >= (goals[at] ?? 0)) continue;
        const own = point.enabled.filter(({ lane }) => ofLane(lane) === of);
        if (own.length === 0) continue;
        const next = wanted.get(of)?.[done];
        const lane = own.some(each => each.lane === next)
          ? (next ?? '')
          : whoeverHasTheBaton({ ...point, enabled: own });
        if (!own.find(each => each.lane === lane)?.isUpkeep) made.set(of, done + 1);
        return lane;
      }
      return whoeverHasTheBaton(point);
    },
  };
}
