import { inChild } from '../lib/child.mjs';
import { count, ms, rate, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const contended = 'landing/two_runs';
const times = 7;

/** A recorded case of two lanes that land on one main, replayed: on real git, and all from the tape. */
export function replay({ rounds }) {
  const { sessions, tape } = alternate(
    {
      sessions: () => inChild('replay', contended, 'sessions', times),
      tape: () => inChild('replay', contended, 'tape', times),
    },
    Math.min(rounds, 3),
  );
  const row = (name, { entries, ms: taken, firstMs }) => [
    `**Reprise**, fidelity \`${name}\`, ${count(entries)} entries`,
    ms(taken),
    ms(firstMs),
    rate(1, taken),
    rate(entries, taken),
  ];
  return {
    title: 'Replay of a recorded case: two runs that land on one main',
    body: table(
      ['', 'a case, warm', 'the first of a process', 'cases', 'entries'],
      [row('sessions', sessions), row('tape', tape)],
    ),
    targets: [
      {
        what: 'a two-lane landing case is replayed on real git within 500 ms',
        value: sessions.ms,
        most: 500,
        tolerance: 2,
        show: ms,
      },
    ],
  };
}
