import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { finishedButOne } from '../lib/finished-but-one.ts';
import { count, rate, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const steps = 10_000;

/** Reads rows from SQLite and folds them into a state. Every event is parsed, validated and applied. */
export const fold: BenchCase = ({ rounds }) => {
  const run = finishedButOne(steps);
  const { fold: result } = alternate(
    { fold: () => inChild('fold', 'fold', steps, run.original, run.runId) },
    rounds,
  );
  run.remove();
  const { events, ms, coldMs } = result;
  return {
    title: 'Reading, validating and folding a history',
    body: table(
      ['', 'warm', 'in a fresh process'],
      [[`**Reprise**, ${count(events)} events`, rate(events, ms), rate(events, coldMs)]],
    ),
    targets: [
      {
        what: 'a history is folded at 200,000 events/s or more',
        value: events / ms,
        least: 200,
        tolerance: 0.5,
        show: value => rate(value, 1),
      },
    ],
  };
};
