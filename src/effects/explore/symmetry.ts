import { conflicts } from '../effect.ts';
import { topLane } from '../recording/recording.ts';
import type { Move, Point } from './schedule.ts';

/** A move that each of several symmetric lanes makes. All of these moves conflict with each other. */
interface SymmetricMove {
  /** Lanes, in the order in which they make the move. */
  readonly lanes: readonly string[];
  /** Number of the move within its lane, from 0. */
  readonly nth: number;
}

/**
 * Symmetry reduction: a fixed order for symmetric lanes, so that schedules that differ only by a permutation of these
 * lanes are not tried. Each lane makes one move in its turn; its moves before and after that are unrestricted. Every
 * schedule has this order after renaming its lanes.
 */
export class SymmetryOrder {
  readonly #turns: readonly SymmetricMove[];
  readonly #ofLane = new Map<string, { readonly turn: SymmetricMove; readonly rank: number }>();
  /** Number of moves of each lane. */
  readonly #counts = new Map<string, number>();
  /** Position in the trace of each lane's turn. */
  readonly #places = new Map<string, number>();
  /** Moves in turn, with the turn before as their cause. */
  readonly #inTurn = new WeakMap<Move, Move>();

  constructor(turns: readonly SymmetricMove[]) {
    this.#turns = turns;
    for (const turn of turns)
      for (const [rank, lane] of turn.lanes.entries()) this.#ofLane.set(lane, { turn, rank });
  }

  /** Takes the order from a schedule. */
  static in(trace: readonly Move[], symmetric: readonly (readonly string[])[]): SymmetryOrder {
    return new SymmetryOrder(symmetric.flatMap(lanes => turnIn(trace, lanes) ?? []));
  }

  /** Returns the same order for another schedule. */
  again(): SymmetryOrder {
    return new SymmetryOrder(this.#turns);
  }

  /** Removes moves whose turn has not come. */
  at(point: Point): Point {
    if (this.#turns.length === 0) return point;
    return { ...point, enabled: this.allowed(point.enabled), waiting: this.allowed(point.waiting) };
  }

  allowed(moves: readonly Move[]): readonly Move[] {
    return moves.flatMap(move => this.#ordered(move) ?? []);
  }

  made(lane: string, n: number): void {
    if (!this.#ofLane.has(lane)) return;
    if (this.#isTurnOf(lane)) this.#places.set(lane, n);
    this.#counts.set(lane, (this.#counts.get(lane) ?? 0) + 1);
  }

  #isTurnOf(lane: string): boolean {
    return this.#ofLane.get(lane)?.turn.nth === (this.#counts.get(lane) ?? 0);
  }

  #ordered(move: Move): Move | undefined {
    const own = this.#ofLane.get(move.lane);
    if (!own || own.rank === 0 || !this.#isTurnOf(move.lane)) return move;
    const known = this.#inTurn.get(move);
    if (known) return known;
    const position = this.#places.get(own.turn.lanes[own.rank - 1] ?? '');
    if (position === undefined) return undefined;
    const ordered = { ...move, after: [...(move.after ?? []), position] };
    this.#inTurn.set(move, ordered);
    return ordered;
  }
}

interface CountedMove {
  readonly move: Move;
  readonly nth: number;
}

/** Finds the first move that all symmetric lanes make and that conflicts between them. */
function turnIn(trace: readonly Move[], symmetric: readonly string[]): SymmetricMove | undefined {
  const counts = new Map<string, number>();
  const byPlace = new Map<string, CountedMove[]>();
  for (const move of trace) {
    const nth = counts.get(move.lane) ?? 0;
    counts.set(move.lane, nth + 1);
    const top = topLane(move.lane);
    if (!symmetric.includes(top)) continue;
    const position = `${nth} ${move.lane.slice(top.length)}`;
    const others = byPlace.get(position);
    if (others) others.push({ move, nth });
    else byPlace.set(position, [{ move, nth }]);
  }
  for (const all of byPlace.values()) {
    const [first] = all;
    if (!first || all.length < symmetric.length || !doAllConflict(all)) continue;
    return { lanes: all.map(({ move }) => move.lane), nth: first.nth };
  }
  return undefined;
}

const doAllConflict = (all: readonly CountedMove[]): boolean =>
  all.every((a, at) => all.every((b, other) => other <= at || isSameAndConflicts(a.move, b.move)));

const isSameAndConflicts = (a: Move, b: Move): boolean => a.op === b.op && conflicts(a.keys, b.keys);
