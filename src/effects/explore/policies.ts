import { topLane } from '../recording/recording.ts';
import type { Move, Performed, Point, Policy } from './schedule.ts';

/** Chooses an enabled lane uniformly at random. */
export function randomPolicy(seed: number): Policy {
  const random = seeded(seed);
  return { choose: ({ enabled }) => oneOf(enabled, random).lane };
}

/** Returns the number of moves of each lane. */
function movesByLane(trace: readonly Move[]): ReadonlyMap<string, number> {
  const moves = new Map<string, number>();
  for (const { lane } of trace) moves.set(lane, (moves.get(lane) ?? 0) + 1);
  return moves;
}

/**
 * Uniform random walk (Zhao and others, 2025): lanes are weighted by their estimated number of remaining moves, taken
 * from a trial, so that all interleavings are about equally likely.
 */
function urwPolicy(seed: number, expected: ReadonlyMap<string, number>): Policy {
  const random = seeded(seed);
  const left = new Map(expected);
  const weightOf = ({ lane }: Move) => Math.max(1, left.get(lane) ?? 1);
  return {
    choose: ({ enabled }) => {
      let total = 0;
      for (const move of enabled) total += weightOf(move);
      let rest = total * random();
      for (const move of enabled) {
        rest -= weightOf(move);
        if (rest >= 0) continue;
        left.set(move.lane, (left.get(move.lane) ?? 1) - 1);
        return move.lane;
      }
      return oneOf(enabled, random).lane;
    },
  };
}

interface PctOptions {
  /** Bug depth: number of decisions that have to go one way for the bug to show. */
  readonly depth: number;
  /** Estimated number of moves of a schedule, taken from a trial. */
  readonly length: number;
}

/** Factor by which a schedule may exceed its expected length before lanes are chosen at random, which is fair. */
const patience = 10;

/**
 * Probabilistic concurrency testing (Burckhardt and others, 2010): the lane with the highest priority continues.
 * Priorities are random, and at a few random moments the last lane gets the lowest. Only this sampler can stall a lane.
 */
function pctPolicy(seed: number, { depth, length }: PctOptions): Policy {
  const random = seeded(seed);
  const priorities = new Map<string, number>();
  const changes = new Set<number>();
  for (let left = Math.min(depth - 1, length - 1); left > 0; left--)
    changes.add(1 + Math.floor(random() * (length - 1)));
  let lowest = 0;
  let decisions = 0;
  const priorityOf = ({ lane }: Move): number => {
    const known = priorities.get(lane) ?? 1 + random();
    priorities.set(lane, known);
    return known;
  };
  return {
    choose: ({ n, enabled, last }) => {
      if (n > patience * length + 100) return oneOf(enabled, random).lane;
      if (enabled.length > 1 && changes.has(decisions++) && last !== undefined)
        priorities.set(last, --lowest);
      return best(enabled, priorityOf).lane;
    },
  };
}

const best = (enabled: readonly Move[], scoreOf: (move: Move) => number): Move =>
  enabled.reduce((a, b) => (scoreOf(b) > scoreOf(a) ? b : a));

/** Never preempts a lane: it continues until it waits or ends, then the first of the others does. */
export const nonPreemptivePolicy: Policy = { choose: point => continueLast(point) };

export function continueLast({ enabled, last = '' }: Point): string {
  const top = topLane(last);
  const next =
    enabled.find(({ lane }) => lane === last) ??
    enabled.find(({ lane, isOutside }) => !isOutside && topLane(lane) === top) ??
    enabled.find(({ isOutside }) => !isOutside) ??
    enabled[0];
  return next?.lane ?? '';
}

/** Generator of numbers from 0 (inclusive) to 1 (exclusive), deterministic for a seed. */
export type Random = () => number;

/** Mulberry32: one 32-bit word of state, which is enough to choose between a few lanes. */
export function seeded(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a random element; `of` must not be empty. */
export const oneOf = <T>(of: readonly T[], random: Random): T => of[Math.floor(random() * of.length)] as T;

/** Estimates from a trial run. */
export interface Expected {
  readonly moves: ReadonlyMap<string, number>;
  readonly length: number;
}

export const expectedFrom = ({ trace }: Performed): Expected => ({
  moves: movesByLane(trace),
  length: Math.max(trace.length, 2),
});

/** Random policies by name. The same seed always gives the same schedule. */
export const samplers = {
  urw: (seed: number, { moves }: Expected): Policy => urwPolicy(seed, moves),
  random: (seed: number): Policy => randomPolicy(seed),
  'pct 3': (seed: number, { length }: Expected): Policy => pctPolicy(seed, { depth: 3, length }),
  'pct 4': (seed: number, { length }: Expected): Policy => pctPolicy(seed, { depth: 4, length }),
  'pct 5': (seed: number, { length }: Expected): Policy => pctPolicy(seed, { depth: 5, length }),
} as const;

export type SamplerName = keyof typeof samplers;

/** Samplers that each policy alternates between. `auto` uses all of them, because none finds everything. */
export const samplersOf = {
  auto: ['urw', 'random', 'pct 3', 'pct 4', 'pct 5'],
  dpor: [],
  urw: ['urw'],
  pct: ['pct 3', 'pct 4', 'pct 5'],
  random: ['random'],
} as const satisfies Record<string, readonly SamplerName[]>;

export type PolicyName = keyof typeof samplersOf;

export const policyNames: readonly PolicyName[] = ['auto', 'dpor', 'urw', 'pct', 'random'];

/** Reorders a list so that every prefix is spread evenly over it. */
export function scatter<T>(all: readonly T[]): readonly T[] {
  const places = all.map((each, at) => ({ each, place: (at * goldenRatio) % 1 }));
  return places.sort((a, b) => a.place - b.place).map(({ each }) => each);
}

/** The fractional parts of its multiples are evenly spread. */
const goldenRatio = (Math.sqrt(5) - 1) / 2;
