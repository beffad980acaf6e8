import { inChild } from '../lib/child.ts';
import { bytes, count, ms, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const planned = [1000, 10_000, 100_000].flatMap(steps => [
  { shape: 'chain', steps, places: 10, store: 'memory' },
  { shape: 'fanOut', steps, places: 1000, store: 'memory' },
]);
const durable = [
  { shape: 'layers', steps: 10_000, places: 10, store: 'sqlite' },
  { shape: 'fanOut', steps: 100_000, places: 1000, store: 'sqlite' },
];
const words = { chain: 'chain', fanOut: 'fan-out', layers: 'layered graph' };

/** Planning takes constant time per step, so the total time grows linearly with the size of the graph. */
export function scale() {
  const cases = [...planned, ...durable];
  const run =
    ({ shape, steps, places, store }) =>
    () =>
      inChild('reprise', 'scale', shape, steps, places, store);
  const results = alternate(Object.fromEntries(cases.map((one, index) => [`#${index}`, run(one)])), 3);
  const measured = cases.map((one, index) => ({ ...one, ...results[`#${index}`] }));
  const perStep = (shape, steps) => {
    const found = measured.find(one => one.shape === shape && one.steps === steps && one.store === 'memory');
    return found.ms / steps;
  };
  const growth = shape => perStep(shape, 100_000) / perStep(shape, 10_000);
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
      ...['chain', 'fanOut'].map(shape => ({
        what: `${words[shape]}: time per step with 100,000 steps, relative to 10,000`,
        value: growth(shape),
        most: 1.25,
        tolerance: 1.6,
        show: value => `${value.toFixed(2)} times`,
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
}
