import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CoverageCounter } from './coverage.ts';
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
import { type ExploredProgram, performing } from './test-support.ts';

/** Runs schedules of the program, and keeps the final state of each. */
function recordingEnds(program: SmallProgram): { perform: Perform; ends: Map<Performed, string> } {
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
  readonly symmetric?: readonly (readonly string[])[];
  /** Number of schedules that run in parallel. */
  readonly parallel: number;
  /** Policy of the first schedule. */
  readonly first?: Policy | undefined;
}

/** Runs a complete search. Schedules are learned in the order in which they were started. */
async function reduce(perform: Perform, { most, symmetric = [], parallel, first: begin }: ReduceOptions) {
  const dpor = new Dpor({ symmetric, first: begin });
  const all: Performed[] = [];
  const running: { readonly policy: Policy; readonly performing: Promise<Performed> }[] = [];
  for (;;) {
    const policy = running.length < parallel ? dpor.next() : undefined;
    if (policy) {
      running.push({ policy, performing: perform(policy) });
      continue;
    }
    const first = running.shift();
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

/** Policy of a random first schedule. */
const anyFirst = fc.option(fc.integer().map(randomPolicy), { nil: undefined });

const classesOf = (all: readonly Performed[]) => new Set(all.map(({ trace }) => classText(trace)));

/** Equivalence class of a schedule, independent of the names of its lanes. */
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

/** Expects the reduction to find the classes of all interleavings. */
async function expectAllClasses(perform: Perform): Promise<void> {
  const everything = (await enumerate(perform, 200)) ?? [];
  const reduced = await reduce(perform, { most: 200, parallel: 1 });
  expect(reduced.length).toBeGreaterThan(2);
  expect(classesOf(reduced)).toEqual(classesOf(everything));
}

describe('partial-order reduction', () => {
  it('tries an independent read before another one, if a write that is asleep conflicts with both', async () => {
    const readLater = { do: 'branch', key: 'x', ifOdd: { do: 'take' } } as const;
    const forkRead = { do: 'fork', body: [{ do: 'read', key: 'x' }] } as const;
    const { perform } = recordingEnds([
      [{ do: 'session', key: 'x' }],
      [{ do: 'locked', key: 'm', body: [] }, forkRead, readLater],
    ]);
    await expectAllClasses(perform);
  });

  it.each([
    { until: 'the end', isOpenedAgain: false },
    { until: 'another move enables it', isOpenedAgain: true },
  ])('does so too if the move that is asleep is blocked later, until $until', async ({ isOpenedAgain }) => {
    const program: ExploredProgram = world => {
      let isClosed = false;
      const setClosed = (to: boolean) => {
        isClosed = to;
      };
      const door = world.effect<boolean, void>({
        ...{ name: 'door', span: 'short', keys: () => ({ writes: ['door'] }), perform: setClosed },
      });
      const write = world.effect<string, void>({
        ...{ name: 'write', span: 'short', keys: key => ({ writes: [key] }), perform: () => {} },
      });
      // Conflicts with both moves that race below, but only the door blocks it.
      const enter = world.effect<void, void>({
        ...{ name: 'enter', span: 'short', keys: () => ({ writes: ['door', 'notes'] }), perform: () => {} },
        enabled: () => !isClosed,
      });
      const closing = async () => {
        await write('other');
        const noting = world.fork(() => write('notes'));
        await door(true);
        await world.join([noting]);
        if (isOpenedAgain) await door(false);
      };
      return { lanes: { l0: () => enter(), l1: closing } };
    };
    await expectAllClasses(performing(program));
  });

  it('finds every equivalence class, final state and deadlock of random small programs', async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(smallPrograms, oneToFour, anyFirst, async (program, parallel, first) => {
        const { perform, ends } = recordingEnds(program);
        const everything = await enumerate(perform, 200);
        if (!everything) return;
        compared++;
        const all = new Set(everything.map(one => ends.get(one)));
        const reduced = await reduce(perform, { most: 4 * everything.length + 10, parallel, first });
        expect(new Set(reduced.map(one => ends.get(one)))).toEqual(all);
        expect(classesOf(reduced)).toEqual(classesOf(everything));
        const count = new CoverageCounter();
        for (const { trace } of everything) count.see(trace);
        expect(count.coverage.classes).toBe(classesOf(everything).size);
      }),
      { numRuns: 120 },
    );
    expect(compared).toBeGreaterThan(20);
  });

  it('with symmetric lanes finds every class up to a permutation of the lanes', async () => {
    let reducedTo = 0;
    let outOf = 0;
    await fc.assert(
      fc.asyncProperty(twins, oneToFour, async (program, parallel) => {
        const { perform } = recordingEnds(program);
        const everything = await enumerate(perform, 300);
        if (!everything) return;
        const lanes = program.map((_, index) => `l${index}`);
        const reduced = await reduce(perform, {
          most: 4 * everything.length + 10,
          symmetric: [lanes],
          parallel,
        });
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
