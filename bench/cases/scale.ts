import type { Shape } from '../contenders/workflows.ts';
import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { bytes, count, ms, table } from '../lib/format.ts';
import { alternateAll } from '../lib/stats.ts';

interface Graph {
  readonly shape: Shape;
  readonly steps: number;
  readonly places: number;
  readonly store: 'memory' | 'sqlite';
}

const planned = [1000, 10_000, 100_000].flatMap((steps): Graph[] => [
  { shape: 'chain', steps, places: 10, store: 'memory' },
  { shape: 'fanOut', steps, places: 1000, store: 'memory' },
]);
const durable: readonly Graph[] = [
  { shape: 'layers', steps: 10_000, places: 10, store: 'sqlite' },
  { shape: 'fanOut', steps: 100_000, places: 1000, store: 'sqlite' },
];
const words = { chain: 'chain', fanOut: 'fan-out', layers: 'layered graph' };

/** Planning takes constant time per step, so the total time grows linearly with the size of the graph. */
export const scale: BenchCase = () => {
  const run = ({ shape, steps, places, store }: Graph) =>
    inChild('reprise', 'scale', shape, steps, places, store);
  const measured = alternateAll([...planned, ...durable], run, 3).map(([graph, figures]) => ({
    ...graph,
    ...figures,
  }));
  const perStep = (shape: Shape, steps: number) => {
    const found = measured.find(one => one.shape === shape && one.steps === steps && one.store === 'memory');
    return found ? found.ms / steps : Number.NaN;
  };
  const growth = (shape: Shape) => perStep(shape, 100_000) / perStep(shape, 10_000);
  return {
    title: 'Large graphs, once each in a fresh process',
    body: table(
      ['', 'steps', 'store', 'defining', 'running', 'per step', 'peak RSS', 'RSS per step'],
      measured.map(one => [
        words[one.shape],
        count(one.steps),
        one.store === 'sqlite' ? 'SQLite' : one.store,
        ms(one.definedMs),
        ms(one.ms),
        `${count((one.ms * 1000) / one.steps)} µs`,
        bytes(one.peakRss),
        bytes(one.rssPerStep),
      ]),
    ),
    notes: [
      'The memory store keeps the whole history in memory. Small graphs cost more per step because the code is still cold.',
    ],
    targets: [
      ...(['chain', 'fanOut'] as const).map(shape => ({
        what: `${words[shape]}: time per step with 100,000 steps, relative to 10,000`,
        value: growth(shape),
        most: 1.25,
        tolerance: 1.6,
        show: (value: number) => `${value.toFixed(2)} times`,
      })),
      ...measured
        .filter(one => one.store === 'sqlite')
        .map(one => ({
          what: `${words[one.shape]} of ${count(one.steps)} steps on SQLite: memory per step`,
          value: one.rssPerStep,
          most: 8192,
          tolerance: 1.5,
          show: bytes,
        })),
    ],
  };
};
