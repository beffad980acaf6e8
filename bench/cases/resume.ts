import { inChild } from '../lib/child.ts';
import { finishedButOne } from '../lib/finished-but-one.ts';
import { count, ms, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const sizes = [1000, 10_000];

/** Time to resume a run from the start of the process, including imports. */
export function resume({ rounds }) {
  const runs = sizes.map(steps => ({ steps, ...finishedButOne(steps) }));
  const contenders = runs.map(({ steps, runId, copy }) => [
    steps,
    () => inChild('resume', steps, copy(), runId),
  ]);
  const results = alternate(
    { bare: () => inChild('bare'), ...Object.fromEntries(contenders) },
    Math.max(rounds, 5),
  );
  for (const run of runs) run.remove();
  return {
    title: 'Resuming a run that was killed in its last step, in a fresh process',
    body: table(
      ['', 'from process start to result', 'of which imports', 'defining the workflow', 'resuming'],
      [
        ['node alone', ms(results.bare.totalMs), '', '', ''],
        ...sizes.map(steps => {
          const { totalMs, importMs, defineMs, resumeMs } = results[steps];
          return [
            `**Reprise**, ${count(steps)} steps`,
            ms(totalMs),
            ms(importMs),
            ms(defineMs),
            ms(resumeMs),
          ];
        }),
      ],
    ),
    targets: [
      {
        what: 'resuming 10,000 steps takes at most 300 ms more than bare startup',
        value: results[10_000].totalMs - results.bare.totalMs,
        most: 300,
        tolerance: 2,
        show: ms,
      },
    ],
  };
}
