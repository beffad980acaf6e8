import { inChild } from '../lib/child.mjs';
import { count, rate, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const rounds = 5_000;

/** Effects of four lanes granted one after another: by a player that takes the first, and as a tape says, compared with it. */
export function conductor({ rounds: times }) {
  const { memory, tape } = alternate(
    {
      memory: () => inChild('conductor', 'in-memory', rounds),
      tape: () => inChild('conductor', 'from-tape', rounds),
    },
    times,
  );
  const row = (name, { entries, ms, coldMs }) => [
    `**Reprise**, ${name}, ${count(entries)} entries`,
    rate(entries, ms),
    rate(entries, coldMs),
  ];
  const target = (what, { entries, ms }, least) => ({
    what,
    value: entries / ms,
    least,
    tolerance: 0.5,
    show: value => rate(value, 1),
  });
  return {
    title: 'Conducting lanes',
    body: table(
      ['', 'warm', 'in a fresh process'],
      [row('in memory', memory), row('replayed from a tape', tape)],
    ),
    targets: [
      target('100,000 entries/s are conducted in memory', memory, 100),
      target('50,000 entries/s are replayed from a tape', tape, 50),
    ],
  };
}
