import { continueLast, type Move, type Point, type Policy, scatter } from '../../effects/explore/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import { type Faults, firstName, noFaults, type ScheduleAttempt, type ScheduleSource } from './contract.ts';
import type { OutcomeForms } from './outcomes.ts';
import type { PerformedCase } from './perform.ts';
import type { PreparedCase } from './prepare.ts';
import type { RaceMove } from './race-file.ts';
import { everyFault } from './sources.ts';

/** Returns the recorded moves whose order a schedule decides. A trial schedule shows which effects these are. */
function recordedMoves({ loaded }: PreparedCase, { trace }: PerformedCase): readonly RaceMove[] {
  const ops = new Set(trace.map(({ op }) => op));
  return loaded.recording.entries.filter(({ op }) => ops.has(op)).map(({ lane, op }) => ({ lane, op }));
}

/**
 * A policy that follows the recorded order as far as possible. A lane that deviates from the recording, or was killed and
 * restarted, catches up at the next recorded move of its command.
 */
function asRecorded(turns: readonly RaceMove[]): Policy {
  const left = [...turns];
  const owners = new Owners();
  const choose = (point: Point): string => {
    const lane = owners.returning(point) ?? nextTurn(point);
    owners.note(point.enabled.find(move => move.lane === lane));
    return lane;
  };
  const nextTurn = (point: Point): string => {
    for (let wanted = left[0]; wanted; wanted = left[0]) {
      const move = moveFor(wanted, point);
      if (move?.op === wanted.op) {
        left.shift();
        return move.lane;
      }
      const skipped = move ? skippedBefore(left, move) : 1;
      if (move && skipped === 0) return move.lane;
      left.shift();
    }
    return continueLast(point);
  };
  return { isCalm: true, choose };
}

/**
 * Tracks which commands own a run. A restarted owner goes first until it has its run back. Otherwise another command
 * would take the run over and do the work of both, which is a different order from the recorded one.
 */
class Owners {
  /** Owners by their name in the case, in the order in which their runs began. */
  readonly #owners = new Set<string>();
  /** Processes that have created or taken over a run. */
  readonly #settled = new Set<string>();

  returning(point: Point): string | undefined {
    for (const owner of this.#owners) {
      const enabled = point.enabled.filter(({ lane }) => this.#isBack(topLane(lane), owner));
      if (enabled.length > 0) return continueLast({ ...point, enabled });
    }
    return undefined;
  }

  note(move: Move | undefined): void {
    if (!move) return;
    const life = topLane(move.lane);
    if (move.op === 'store.release') this.#owners.delete(firstName(life));
    if (move.op !== 'store.create' && move.op !== 'store.acquire') return;
    this.#owners.add(firstName(life));
    this.#settled.add(life);
  }

  #isBack(life: string, owner: string): boolean {
    return life !== owner && firstName(life) === owner && !this.#settled.has(life);
  }
}

/** Returns the next move of the lane, or of another lane of its command. */
function moveFor({ lane, op }: RaceMove, point: Point): Move | undefined {
  const step = stepOf(lane);
  const own = point.enabled.find(each => each.lane === lane);
  if (own) return own;
  const enabled = point.enabled.filter(each => stepOf(each.lane) === step);
  if (enabled.length === 0) return undefined;
  const same = enabled.find(each => each.op === op);
  const last = continueLast({ ...point, enabled });
  return same ?? enabled.find(each => each.lane === last);
}

const stepOf = (lane: string): string => firstName(topLane(lane));

/** Number of recorded moves of a lane that are searched for its current one. */
const lookAhead = 4;

/** Number of recorded moves that the lane has skipped. */
function skippedBefore(left: readonly RaceMove[], { lane, op }: Move): number {
  const own = left.filter(turn => turn.lane === lane).slice(0, lookAhead);
  return Math.max(
    0,
    own.findIndex(turn => turn.op === op),
  );
}

/** Coverage of the points in the recorded schedule at which a command can be killed. */
export interface CrashCoverage {
  readonly tried: number;
  /** Number of crash points. Unknown until the recorded schedule has been played without a crash. */
  readonly of?: number | undefined;
  /** Number of tried crash points without a verdict. */
  readonly inconclusive: number;
  /**
   * Number of tried crash points whose outcome differs from the recorded one, but also occurs in another order
   * without a crash.
   */
  readonly otherEnds: number;
}

/**
 * Supplies the recorded schedule, and then the same schedule with one crash: of each command after each of its
 * effects, and of all commands together after each effect. The crash points are scattered, so that an exploration
 * that is cut short has tried points from the whole schedule.
 */
export class CrashPoints implements ScheduleSource {
  readonly #turns: readonly RaceMove[];
  #points: readonly Faults[] | undefined;
  #recorded: OutcomeForms | undefined;
  #hasBegun = false;
  #given = 0;
  #tried = 0;
  #inconclusive = 0;
  #otherEnds = 0;

  /** `trial` is any finished schedule: it shows which effects are scheduled. */
  constructor(prepared: PreparedCase, trial: PerformedCase) {
    this.#turns = recordedMoves(prepared, trial);
  }

  get coverage(): CrashCoverage {
    return {
      tried: this.#tried,
      of: this.#points?.length,
      inconclusive: this.#inconclusive,
      otherEnds: this.#otherEnds,
    };
  }

  next(): ScheduleAttempt | undefined {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return this.#attempt(noFaults, 0);
    }
    const adversity = this.#points?.[this.#given];
    return adversity && this.#attempt(adversity, ++this.#given);
  }

  #attempt(adversity: Faults, seed: number): ScheduleAttempt {
    const policy = asRecorded(this.#turns);
    return { policy, adversity, by: 'the recorded order', seed, recorded: this.#recorded };
  }

  learn(performed: PerformedCase): void {
    const { verdict, forms } = performed;
    if (!this.#points) {
      this.#points = scatter(everyFault(performed, { crashes: true, faults: [] }));
      if (verdict.kind === 'passed') this.#recorded = forms;
      return;
    }
    this.#tried++;
    if (verdict.kind === 'inconclusive') this.#inconclusive++;
    else if (this.#recorded && forms?.work !== this.#recorded.work) this.#otherEnds++;
  }
}
