import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conflicts, type Keys } from './effect.ts';
import { createLiveWorld } from './live-world.ts';
import { turn } from './test-support.ts';
import type { World } from './world.ts';

interface Work {
  readonly name: string;
  readonly keys: Keys;
  /** Number of event-loop turns that it takes; 0 is synchronous. */
  readonly turns: number;
}

interface Span {
  readonly name: string;
  readonly keys: Keys;
  readonly from: number;
  to: number;
}

/** Effects that record when they began and ended. */
function recorder(world: World) {
  const spans: Span[] = [];
  let moment = 0;
  const define = (span: 'short' | 'long') =>
    world.effect<Work, void>({
      name: `test.${span}`,
      span,
      keys: ({ keys }) => keys,
      perform: ({ name, keys, turns }) => {
        const entry: Span = { name, keys, from: moment++, to: Number.POSITIVE_INFINITY };
        spans.push(entry);
        const end = () => {
          entry.to = moment++;
        };
        if (turns === 0) return end();
        return (async () => {
          for (let left = turns; left > 0; left--) await turn();
          end();
        })();
      },
    });
  return { spans, short: define('short'), long: define('long') };
}

const overlap = (a: Span, b: Span) => a.from < b.to && b.from < a.to;

/** Runs each list of works in its own lane. */
async function play(
  lanes: readonly (readonly (Work & { readonly long?: boolean })[])[],
): Promise<readonly Span[]> {
  const world = createLiveWorld({ refuseStrays: true });
  const { spans, short, long } = recorder(world);
  await world.open('run', async () => {
    const refs = lanes.map(works =>
      world.fork(async () => {
        for (const work of works) await (work.long ? long(work) : short(work));
      }),
    );
    await world.join(refs);
  });
  return spans;
}

const pairs = (spans: readonly Span[]) =>
  spans.flatMap((a, index) => spans.slice(index + 1).map(b => [a, b] as const));

describe('conflict keys', () => {
  it('serialize effects if one writes a key that the other reads or writes', async () => {
    const write = { name: 'write', keys: { writes: ['main'] }, turns: 2 };
    const read = { name: 'read', keys: { reads: ['main'] }, turns: 2 };
    for (const [a, b] of [
      [write, write],
      [write, read],
      [read, write],
    ] as const) {
      const [first, second] = await play([[a], [b]]);
      expect(first && second && overlap(first, second)).toBe(false);
    }
  });

  it('let readers overlap, and effects without a common key', async () => {
    const read = { name: 'read', keys: { reads: ['main'] }, turns: 2 };
    const other = { name: 'other', keys: { writes: ['else'] }, turns: 2 };
    for (const [a, b] of [
      [read, read],
      [read, other],
      [other, { ...read, keys: {} }],
    ] as const) {
      const [first, second] = await play([[a], [b]]);
      expect(first && second && overlap(first, second)).toBe(true);
    }
  });

  it('are held by a long effect from its start to its end', async () => {
    const spans = await play([
      [{ name: 'long', keys: { writes: ['main'] }, turns: 5, long: true }],
      [{ name: 'short', keys: { writes: ['main'] }, turns: 0 }],
    ]);
    expect(spans.map(({ name }) => name)).toEqual(['long', 'short']);
    expect(pairs(spans).some(([a, b]) => overlap(a, b))).toBe(false);
  });

  it('do not let a stream of readers starve a writer', async () => {
    const reads = (name: string) =>
      Array.from({ length: 6 }, (_, index) => ({
        name: `${name}${index}`,
        keys: { reads: ['main'] },
        turns: 2,
      }));
    // The two readers alternate: without a queue, the key would not be free until both have finished all their reads.
    const spans = await play([
      reads('a'),
      [{ name: 'step', keys: {}, turns: 1 }, ...reads('b')],
      [
        { name: 'step', keys: {}, turns: 1 },
        { name: 'writer', keys: { writes: ['main'] }, turns: 1 },
      ],
    ]);
    const order = spans.map(({ name }) => name);
    expect(order.indexOf('writer')).toBeLessThan(order.indexOf('a3'));
    expect(order).toHaveLength(15);
  });

  it('do not make other effects queue behind one that waits for a long effect', async () => {
    const spans = await play([
      [{ name: 'long', keys: { reads: ['main'] }, turns: 8, long: true }],
      [{ name: 'writer', keys: { writes: ['main', 'log'] }, turns: 0 }],
      [
        { name: 'step', keys: {}, turns: 1 },
        { name: 'bystander', keys: { writes: ['log'] }, turns: 0 },
      ],
    ]);
    const order = spans.map(({ name }) => name);
    expect(order.indexOf('bystander')).toBeLessThan(order.indexOf('writer'));
  });

  it('can be requested by 20,000 lanes at the same time', async () => {
    const many = Array.from({ length: 20_000 }, (_, index) => [
      { name: `w${index}`, keys: { writes: ['main'] }, turns: 0 },
    ]);
    const spans = await play([[{ name: 'first', keys: { writes: ['main'] }, turns: 2 }], ...many]);
    expect(spans.map(({ name }) => name)).toEqual(['first', ...many.map(([work]) => work?.name)]);
  });
});

describe('a random mix of lanes', () => {
  const keyList = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 2 });
  const work = fc.record({
    reads: keyList,
    writes: keyList,
    turns: fc.integer({ min: 0, max: 3 }),
    long: fc.boolean(),
  });
  const lanesOfWork = fc.array(fc.array(work, { maxLength: 5 }), { minLength: 1, maxLength: 6 });

  it('never overlaps conflicting effects, performs each effect once, and keeps the order within a lane', async () => {
    await fc.assert(
      fc.asyncProperty(lanesOfWork, async lanes => {
        const named = lanes.map((works, lane) =>
          works.map(({ reads, writes, turns, long }, index) => ({
            name: `${lane}.${index}`,
            keys: { reads, writes },
            turns,
            long,
          })),
        );
        const spans = await play(named);
        for (const [a, b] of pairs(spans)) if (conflicts(a.keys, b.keys)) expect(overlap(a, b)).toBe(false);
        for (const [lane, works] of named.entries()) {
          const order = spans.filter(({ name }) => name.startsWith(`${lane}.`)).map(({ name }) => name);
          expect(order).toEqual(works.map(({ name }) => name));
        }
      }),
      { numRuns: 150 },
    );
  });
});
