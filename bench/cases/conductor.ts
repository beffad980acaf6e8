import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, rate, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';
import type { Target } from '../lib/targets.ts';

const rounds = 5_000;

/** Grants the effects of four lanes one after another, with a scheduler that takes the first lane and with a replay of a tape. */
export const conductor: BenchCase = ({ rounds: times }) => {
  const { memory, tape } = alternate(
    {
      memory: () => inChild('conductor', 'in-memory', rounds),
      tape: () => inChild('conductor', 'from-tape', rounds),
    },
    times,
  );
  const row = (name: string, { entries, ms, coldMs }: typeof memory) => [
    `**Reprise**, ${name}, ${count(entries)} entries`,
    rate(entries, ms),
    rate(entries, coldMs),
  ];
  const target = (what: string, { entries, ms }: typeof memory, least: number): Target => ({
    what,
    value: entries / ms,
    least,
    tolerance: 0.5,
    show: value => rate(value, 1),
  });
  return {
    title: 'Scheduling lanes',
    body: table(
      ['', 'warm', 'in a fresh process'],
      [row('in memory', memory), row('replayed from a tape', tape)],
    ),
    targets: [
      target('at least 100,000 entries/s are scheduled in memory', memory, 100),
      target('at least 50,000 entries/s are replayed from a tape', tape, 50),
    ],
  };
};
