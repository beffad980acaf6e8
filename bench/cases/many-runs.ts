import { inChild, inChildOf } from '../lib/child.ts';
import { count, ms, table } from '../lib/format.ts';
import { newerNode } from '../lib/peer.ts';
import { alternate } from '../lib/stats.ts';

const sizes = [200, 400, 800, 1600];

/** Runs in one process cost the same whether they are few or many. */
export function manyRuns({ rounds }) {
  const newer = newerNode();
  const nodes = [
    { name: process.version, run: size => inChild('reprise', 'many', size) },
    ...(newer ? [{ name: newer.version, run: size => inChildOf(newer.file, 'reprise', 'many', size) }] : []),
  ];
  const contenders = nodes.flatMap(({ name, run }) =>
    sizes.map(size => [`${name} ${size}`, () => run(size)]),
  );
  const results = alternate(Object.fromEntries(contenders), rounds);
  const measured = nodes.map(({ name }) => {
    const cpu = sizes.map(size => results[`${name} ${size}`].cpuMsPerRun);
    return { name, cpu, growth: cpu.at(-1) / cpu[0] };
  });
  const growthOf = value => `${value.toFixed(2)} times`;
  return {
    title: 'Many runs at the same time in one process',
    body: table(
      ['CPU time per run', ...sizes.map(size => `${count(size)} runs`), 'growth'],
      measured.map(({ name, cpu, growth }) => [
        `**Reprise**, Node ${name.slice(1)}`,
        ...cpu.map(ms),
        growthOf(growth),
      ]),
    ),
    notes: [
      'Each run has four steps. The store is in memory and answers after 2 ms. Before Node 24, `AsyncLocalStorage` is called for every promise of the process.',
      ...(newer ? [] : ['Node 24 could not be installed, so its targets were not measured.']),
    ],
    targets: measured.slice(1).flatMap(({ name, cpu, growth }) => [
      {
        what: `time per run grows at most 1.3 times from 200 to 1,600 runs, Node ${name.slice(1)}`,
        value: growth,
        most: 1.3,
        tolerance: 1.3,
        show: growthOf,
      },
      {
        what: `a run costs at most 2 ms of CPU time, Node ${name.slice(1)}`,
        value: Math.max(...cpu),
        most: 2,
        tolerance: 1.5,
        show: ms,
      },
    ]),
  };
}
