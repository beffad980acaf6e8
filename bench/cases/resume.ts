import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { finishedButOne } from '../lib/finished-but-one.ts';
import { count, ms, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

/** Time to resume a run from the start of the process, including imports. */
export const resume: BenchCase = ({ rounds }) => {
  const [thousand, tenThousand] = [finishedButOne(1000), finishedButOne(10_000)];
  const resumed = ({ steps, copy, runId }: typeof thousand) =>
    inChild('resume', 'resume', steps, copy(), runId);
  const results = alternate(
    {
      bare: () => inChild('bare', 'alone'),
      thousand: () => resumed(thousand),
      tenThousand: () => resumed(tenThousand),
    },
    Math.max(rounds, 5),
  );
  thousand.remove();
  tenThousand.remove();
  const row = (steps: number, { totalMs, importMs, defineMs, resumeMs }: typeof results.thousand) => [
    `**Reprise**, ${count(steps)} steps`,
    ...[totalMs, importMs, defineMs, resumeMs].map(ms),
  ];
  return {
    title: 'Resuming a run that was killed in its last step, in a fresh process',
    body: table(
      ['', 'from process start to result', 'of which imports', 'defining the workflow', 'resuming'],
      [
        ['node alone', ms(results.bare.totalMs), '', '', ''],
        row(thousand.steps, results.thousand),
        row(tenThousand.steps, results.tenThousand),
      ],
    ),
    targets: [
      {
        what: 'resuming 10,000 steps takes at most 300 ms more than bare startup',
        value: results.tenThousand.totalMs - results.bare.totalMs,
        most: 300,
        tolerance: 2,
        show: ms,
      },
    ],
  };
};
