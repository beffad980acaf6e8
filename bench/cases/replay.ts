import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, ms, rate, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const contended = 'landing/two_runs';
const times = 7;

/** Replays a recorded case of two lanes that land on the same branch: on real git, and entirely from the tape. */
export const replay: BenchCase = ({ rounds }) => {
  const { sessions, tape } = alternate(
    {
      sessions: () => inChild('replay', 'replay', contended, 'sessions', times),
      tape: () => inChild('replay', 'replay', contended, 'tape', times),
    },
    Math.min(rounds, 3),
  );
  const row = (name: string, { entries, ms: taken, firstMs }: typeof tape) => [
    `**Reprise**, fidelity \`${name}\`, ${count(entries)} entries`,
    ms(taken),
    ms(firstMs),
    rate(1, taken),
    rate(entries, taken),
  ];
  return {
    title: 'Replaying a recorded case: two runs that land on the same branch',
    body: table(
      ['', 'one case, warm', 'first case of a process', 'cases/s', 'entries/s'],
      [row('sessions', sessions), row('tape', tape)],
    ),
    targets: [
      {
        what: 'a landing case with two lanes is replayed on real git within 500 ms',
        value: sessions.ms,
        most: 500,
        tolerance: 2,
        show: ms,
      },
    ],
  };
};
