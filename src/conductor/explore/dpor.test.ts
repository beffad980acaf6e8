import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClassCount } from './classes.ts';
import { Dpor } from './dpor.ts';
import type { Perform, Performed } from './move.ts';
import {
  classText,
  enumerate,
  explored,
  type SmallProgram,
  smallPrograms,
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

async function reduce(perform: Perform, most: number): Promise<readonly Performed[]> {
  const dpor = new Dpor();
  const all: Performed[] = [];
  for (let policy = dpor.next(); policy; policy = dpor.next()) {
    if (all.length >= most) throw new Error(`not complete after ${most} schedules`);
    const performed = await perform(policy);
    all.push(performed);
    dpor.learn(performed);
  }
  expect(dpor.isComplete).toBe(true);
  return all.filter(({ verdict }) => verdict.kind !== 'cut');
}

const classesOf = (all: readonly Performed[]) => new Set(all.map(({ trace }) => classText(trace)));

describe('partial-order reduction', () => {
  it('misses no class of schedules, no end and no deadlock of any small program', async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(smallPrograms, async program => {
        const { perform, ends } = ending(program);
        const everything = await enumerate(perform, 200);
        if (!everything) return;
        compared++;
        const all = new Set(everything.map(one => ends.get(one)));
        const reduced = await reduce(perform, 4 * everything.length + 10);
        expect(new Set(reduced.map(one => ends.get(one)))).toEqual(all);
        expect(classesOf(reduced)).toEqual(classesOf(everything));
        const count = new ClassCount();
        for (const { trace } of everything) count.see(trace);
        expect(count.coverage.classes).toBe(classesOf(everything).size);
      }),
      { numRuns: 120 },
    );
    expect(compared).toBeGreaterThan(40);
  });
});
