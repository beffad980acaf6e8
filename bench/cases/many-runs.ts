import type { BenchCase } from '../lib/bench-case.ts';
import { inChildOf } from '../lib/child.ts';
import { count, ms, table } from '../lib/format.ts';
import { newerNode } from '../lib/peer.ts';
import { alternateAll } from '../lib/stats.ts';

const sizes = [200, 400, 800, 1600];

/** Runs in one process cost the same whether they are few or many. */
export const manyRuns: BenchCase = ({ rounds }) => {
  const newer = newerNode();
  const nodes = [
    { name: process.version, file: process.execPath },
    ...(newer ? [{ name: newer.version, file: newer.file }] : []),
  ];
  const all = nodes.flatMap(({ name, file }) => sizes.map(size => ({ name, file, size })));
  const results = alternateAll(all, ({ file, size }) => inChildOf(file, 'reprise', 'many', size), rounds);
  const measured = nodes.map(({ name }) => {
    const cpu = results.flatMap(([one, { cpuMsPerRun }]) => (one.name === name ? cpuMsPerRun : []));
    const [first = 0, last = 0] = [cpu[0], cpu.at(-1)];
    return { name, cpu, growth: last / first };
  });
  const growthOf = (value: number) => `${value.toFixed(2)} times`;
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
};
