import { scatter, whoeverHasTheBaton } from '../../effects/explore/policies.ts';
import type { Move, Point, Policy } from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';
import { type Adversity, type Attempt, firstName, noAdversity, type Source } from './contract.ts';
import type { Forms } from './endings.ts';
import type { PerformedCase } from './perform.ts';
import type { PreparedCase } from './prepare.ts';
import type { Turn } from './race-file.ts';
import { everyMishap } from './sources.ts';

/** Whose turn it was when the case was recorded, of all that a schedule decides about, as a trial shows. */
function recordedTurns({ loaded }: PreparedCase, { trace }: PerformedCase): readonly Turn[] {
  const ops = new Set(trace.map(({ op }) => op));
  return loaded.recording.entries.filter(({ op }) => ops.has(op)).map(({ lane, op }) => ({ lane, op }));
}

/**
 * The order in which a case was recorded, as far as it can be kept: what steps do to each other comes as it came then. Who
 * does something else than in the recording, or was killed and started again, catches up when it is the turn of its step.
 */
function asRecorded(turns: readonly Turn[]): Policy {
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
      const behind = move ? leftOut(left, move) : 1;
      if (move && behind === 0) return move.lane;
      left.shift();
    }
    return whoeverHasTheBaton(point);
  };
  return { isCalm: true, choose };
}

/**
 * Who is at work on a run. Whoever was killed at it and is started again comes first, in the order in which the runs were
 * begun, until it has it back: otherwise another takes it over, and one of them does what two did.
 */
class Owners {
  /** The first names of steps. */
  readonly #owners = new Set<string>();
  /** Lives that have begun or taken over something. */
  readonly #settled = new Set<string>();

  returning(point: Point): string | undefined {
    for (const owner of this.#owners) {
      const enabled = point.enabled.filter(({ lane }) => this.#isBack(topLane(lane), owner));
      if (enabled.length > 0) return whoeverHasTheBaton({ ...point, enabled });
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

/** How many of the moments at which somebody could be killed in the recorded order have been tried. */
export interface CrashCoverage {
  readonly tried: number;
  /** Not known before the recorded order has been played without a crash. */
  readonly of?: number | undefined;
  /** Of those that were tried, the ones about which nothing can be said. */
  readonly inconclusive: number;
  /** Of those that were tried, the ones that came to something else than without a crash, as another order would. */
  readonly otherEnds: number;
}

/**
 * The recorded order, and then the same with a crash: of each step after each of its entries, and of all of them after
 * each entry of all. If it ends early, moments of all of it were tried.
 */
export class CrashPoints implements Source {
  readonly #turns: readonly Turn[];
  #points: readonly Adversity[] | undefined;
  #recorded: Forms | undefined;
  #hasBegun = false;
  #given = 0;
  #tried = 0;
  #inconclusive = 0;
  #otherEnds = 0;

  /** The trial is any schedule: it tells what is decided about. */
  constructor(prepared: PreparedCase, trial: PerformedCase) {
    this.#turns = recordedTurns(prepared, trial);
  }

  get coverage(): CrashCoverage {
    return {
      tried: this.#tried,
      of: this.#points?.length,
      inconclusive: this.#inconclusive,
      otherEnds: this.#otherEnds,
    };
  }

  next(): Attempt | undefined {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return this.#attempt(noAdversity, 0);
    }
    const adversity = this.#points?.[this.#given];
    return adversity && this.#attempt(adversity, ++this.#given);
  }

  #attempt(adversity: Adversity, seed: number): Attempt {
    const policy = asRecorded(this.#turns);
    return { policy, adversity, by: 'the recorded order', seed, recorded: this.#recorded };
  }

  learn(performed: PerformedCase): void {
    const { verdict, forms } = performed;
    if (!this.#points) {
      this.#points = scatter(everyMishap(performed, { crashes: true, faults: [] }));
      if (verdict.kind === 'passed') this.#recorded = forms;
      return;
    }
    this.#tried++;
    if (verdict.kind === 'inconclusive') this.#inconclusive++;
    else if (this.#recorded && forms?.work !== this.#recorded.work) this.#otherEnds++;
  }
}
