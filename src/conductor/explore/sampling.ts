import { movesByLane, pctPolicy, randomPolicy, urwPolicy } from '../../effects/explore/policies.ts';
import type { Performed, Policy } from '../../effects/explore/schedule.ts';

/** What a trial tells about schedules of a program. */
export interface Expected {
  readonly moves: ReadonlyMap<string, number>;
  readonly length: number;
}

export const expectedFrom = ({ trace }: Performed): Expected => ({
  moves: movesByLane(trace),
  length: Math.max(trace.length, 2),
});

/** Ways to draw schedules: each by a name, of which the same seed always gives the same one. */
export const samplers = {
  urw: (seed: number, { moves }: Expected): Policy => urwPolicy(seed, moves),
  random: (seed: number): Policy => randomPolicy(seed),
  'pct 3': (seed: number, { length }: Expected): Policy => pctPolicy(seed, { depth: 3, length }),
  'pct 4': (seed: number, { length }: Expected): Policy => pctPolicy(seed, { depth: 4, length }),
  'pct 5': (seed: number, { length }: Expected): Policy => pctPolicy(seed, { depth: 5, length }),
} as const;

export type SamplerName = keyof typeof samplers;

/** Which of them take turns; `auto` is all of them, because none finds everything. */
export const samplersOf = {
  auto: ['urw', 'random', 'pct 3', 'pct 4', 'pct 5'],
  dpor: [],
  urw: ['urw'],
  pct: ['pct 3', 'pct 4', 'pct 5'],
  random: ['random'],
} as const satisfies Record<string, readonly SamplerName[]>;

export type PolicyName = keyof typeof samplersOf;

export const policyNames: readonly PolicyName[] = ['auto', 'dpor', 'urw', 'pct', 'random'];
