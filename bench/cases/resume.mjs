import { inChild } from '../lib/child.mjs';
import { finishedButOne } from '../lib/finished-but-one.mjs';
import { count, ms, table, times } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const sizes = [1000, 10_000];

/** How long somebody waits who resumes a run: from the start of the process, with all of its imports. */
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
  const bareMs = results.bare.totalMs;
  const beyond = (results[10_000].totalMs - bareMs) / bareMs;
  return {
    title: 'Resume of a run of which all but the last step is done, in a fresh process',
    body: table(
      ['', 'from process start to result', 'of it imports', 'defining the workflow', 'resuming'],
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
    notes: ['Bare start-up stands for the machine: 300 ms beyond it are 7.5 times a start-up of 40 ms.'],
    targets: [
      {
        what: '10,000 steps are resumed in 7.5 times bare start-up beyond it',
        value: beyond,
        most: 7.5,
        tolerance: 1.5,
        show: times,
      },
    ],
  };
}
