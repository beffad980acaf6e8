import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClassCount } from './coverage.ts';
import { Dpor } from './dpor.ts';
import { randomPolicy } from './policies.ts';
import type { Perform, Performed, Policy } from './schedule.ts';
import {
  classText,
  enumerate,
  explored,
  type SmallProgram,
  smallPrograms,
  twins,
} from './small-programs/test-support.ts';
import { performing } from './test-support.ts';

/** Performs the program, and says of each schedule to what it came. */
function ending(program: SmallProgram): { perform: Perform; ends: Map<Performed, string> } {
  const ends = new Map<Performed, string>();
  const perform: Perform = async policy => {
    let state = () => '';
    const performed = await performing(world => {
      const { lanes, state: seen } = explored(program, world);
      state = seen;
      return { lanes };
    })(policy);
    const { verdict } = performed;
    ends.set(performed, `${state()} ${verdict.kind === 'failed' ? verdict.message : verdict.kind}`);
    return performed;
  };
  return { perform, ends };
}

interface ReduceOptions {
  readonly most: number;
  readonly alike?: readonly (readonly string[])[];
  /** How many schedules are under way at a time. */
  readonly atOnce: number;
  /** What the first of them is. */
  readonly first?: Policy | undefined;
}

/** Learns them in the order in which they were given, whichever ends first. */
async function reduce(perform: Perform, { most, alike = [], atOnce, first: begin }: ReduceOptions) {
  const dpor = new Dpor({ alike, first: begin });
  const all: Performed[] = [];
  const underWay: { readonly policy: Policy; readonly performing: Promise<Performed> }[] = [];
  for (;;) {
    const policy = underWay.length < atOnce ? dpor.next() : undefined;
    if (policy) {
      underWay.push({ policy, performing: perform(policy) });
      continue;
    }
    const first = underWay.shift();
    if (!first) break;
    expect(dpor.isComplete).toBe(false);
    if (all.length >= most) throw new Error(`not complete after ${most} schedules`);
    const performed = await first.performing;
    all.push(performed);
    dpor.learn(performed, first.policy);
  }
  expect(dpor.isComplete).toBe(true);
  return all.filter(({ verdict }) => verdict.kind !== 'cut');
}

const oneToFour = fc.integer({ min: 1, max: 4 });

/** Any schedule may be the first. */
const anyFirst = fc.option(fc.integer().map(randomPolicy), { nil: undefined });

const classesOf = (all: readonly Performed[]) => new Set(all.map(({ trace }) => classText(trace)));

/** The class of a schedule, whatever the names of its lanes. */
function namelessClass({ trace, verdict }: Performed, lanes: readonly string[]): string {
  const text = classText(trace);
  const named = permutations(lanes).map(others =>
    text
      .replaceAll(/l(\d)/g, (_, index) => others[Number(index)] ?? '')
      .split('\n')
      .map(line => line.replace(/: (.*)$/, (_, before: string) => `: ${before.split(',').sort().join()}`))
      .sort()
      .join('\n'),
  );
  return `${verdict.kind}\n${named.sort()[0]}`;
}

const permutations = (of: readonly string[]): readonly (readonly string[])[] =>
  of.length < 2
    ? [of]
    : of.flatMap(first => permutations(of.filter(one => one !== first)).map(rest => [first, ...rest]));

describe('partial-order reduction', () => {
  it('misses no class of schedules, no end and no deadlock of any small program', async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(smallPrograms, oneToFour, anyFirst, async (program, atOnce, first) => {
        const { perform, ends } = ending(program);
        const everything = await enumerate(perform, 200);
        if (!everything) return;
        compared++;
        const all = new Set(everything.map(one => ends.get(one)));
        const reduced = await reduce(perform, { most: 4 * everything.length + 10, atOnce, first });
        expect(new Set(reduced.map(one => ends.get(one)))).toEqual(all);
        expect(classesOf(reduced)).toEqual(classesOf(everything));
        const count = new ClassCount();
        for (const { trace } of everything) count.see(trace);
        expect(count.coverage.classes).toBe(classesOf(everything).size);
      }),
      { numRuns: 120 },
    );
    expect(compared).toBeGreaterThan(20);
  });

  it('of lanes that are alike misses nothing but who is who', async () => {
    let reducedTo = 0;
    let outOf = 0;
    await fc.assert(
      fc.asyncProperty(twins, oneToFour, async (program, atOnce) => {
        const { perform } = ending(program);
        const everything = await enumerate(perform, 300);
        if (!everything) return;
        const lanes = program.map((_, index) => `l${index}`);
        const reduced = await reduce(perform, { most: 4 * everything.length + 10, alike: [lanes], atOnce });
        const nameless = (all: readonly Performed[]) => new Set(all.map(one => namelessClass(one, lanes)));
        expect(nameless(reduced)).toEqual(nameless(everything));
        reducedTo += classesOf(reduced).size;
        outOf += classesOf(everything).size;
      }),
      { numRuns: 120 },
    );
    expect(reducedTo).toBeLessThan(0.8 * outOf);
  });
});
