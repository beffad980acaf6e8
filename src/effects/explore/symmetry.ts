import { conflicts } from '../effect.ts';
import { topLane } from '../recording/recording.ts';
import type { Move, Point } from './schedule.ts';

/** A move of every one of some lanes that are alike, of which each two conflict. */
interface Turn {
  /** Their lanes in the order in which they make it. */
  readonly lanes: readonly string[];
  /** The move of its lane, counted from 0. */
  readonly nth: number;
}

/**
 * An order for lanes that are alike, so that which of them is which is not tried out: the same with others in their places
 * is no other schedule. Each waits for its turn with one move; whatever comes before and after it is free. Every schedule
 * is in that order once its lanes are given other names.
 */
export class Turns {
  readonly #turns: readonly Turn[];
  readonly #ofLane = new Map<string, { readonly turn: Turn; readonly rank: number }>();
  /** How many moves lanes have made. */
  readonly #counts = new Map<string, number>();
  /** Where in the trace lanes have had their turn. */
  readonly #places = new Map<string, number>();
  /** Those moves, with what they waited for. */
  readonly #inTurn = new WeakMap<Move, Move>();

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
    for (const turn of turns)
      for (const [rank, lane] of turn.lanes.entries()) this.#ofLane.set(lane, { turn, rank });
  }

  /** In the order in which they came in a schedule. */
  static in(trace: readonly Move[], alike: readonly (readonly string[])[]): Turns {
    return new Turns(alike.flatMap(lanes => turnIn(trace, lanes) ?? []));
  }

  /** The same for another schedule. */
  again(): Turns {
    return new Turns(this.#turns);
  }

  /** Without moves whose turn has not come. */
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
    const place = this.#places.get(own.turn.lanes[own.rank - 1] ?? '');
    if (place === undefined) return undefined;
    const ordered = { ...move, after: [...(move.after ?? []), place] };
    this.#inTurn.set(move, ordered);
    return ordered;
  }
}

interface Made {
  readonly move: Move;
  readonly nth: number;
}

/** The first move that all of them make, of which each two conflict. */
function turnIn(trace: readonly Move[], alike: readonly string[]): Turn | undefined {
  const counts = new Map<string, number>();
  const byPlace = new Map<string, Made[]>();
  for (const move of trace) {
    const nth = counts.get(move.lane) ?? 0;
    counts.set(move.lane, nth + 1);
    const top = topLane(move.lane);
    if (!alike.includes(top)) continue;
    const place = `${nth} ${move.lane.slice(top.length)}`;
    const others = byPlace.get(place);
    if (others) others.push({ move, nth });
    else byPlace.set(place, [{ move, nth }]);
  }
  for (const all of byPlace.values()) {
    const [first] = all;
    if (!first || all.length < alike.length || !doAllConflict(all)) continue;
    return { lanes: all.map(({ move }) => move.lane), nth: first.nth };
  }
  return undefined;
}

const doAllConflict = (all: readonly Made[]): boolean =>
  all.every((a, at) => all.every((b, other) => other <= at || isSameAndConflicts(a.move, b.move)));

const isSameAndConflicts = (a: Move, b: Move): boolean => a.op === b.op && conflicts(a.keys, b.keys);
