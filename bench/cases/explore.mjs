import { inChild } from '../lib/child.mjs';
import { count, rate, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const schedules = 5_000;

/** Three lanes in memory, in many orders: drawn by chance, and each class of orders once. */
export function explore({ rounds }) {
  const { random, dpor } = alternate(
    {
      random: () => inChild('explore', 'in-memory', 'random', schedules),
      dpor: () => inChild('explore', 'in-memory', 'dpor', schedules),
    },
    rounds,
  );
  const row = (name, { entries, schedules: performed, ms, coldMs }) => [
    `**Reprise**, ${name}, ${count(performed)} schedules`,
    rate(entries, ms),
    rate(performed, ms),
    rate(entries, coldMs),
  ];
  return {
    title: 'Exploring orders',
    body: table(
      ['', 'entries, warm', 'schedules, warm', 'entries, in a fresh process'],
      [row('drawn by chance', random), row('all that differ', dpor)],
    ),
    targets: [
      {
        what: '150,000 entries/s are explored in memory',
        value: random.entries / random.ms,
        least: 150,
        tolerance: 0.5,
        show: value => rate(value, 1),
      },
    ],
  };
}
