import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, percent, rate, table, times } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const steps = 1000;

/** A step cannot start until the previous one is durable, so this measures commits. */
export const sequence: BenchCase = ({ peer, rounds }) => {
  const results = alternate(
    {
      floor: () => inChild('floor', 'rows', steps, 1),
      reprise: () => inChild('reprise', 'run', 'chain', steps, 10),
      ...(peer && {
        graph: () => inChild('langgraph', 'sequence-graph', steps),
        tasks: () => inChild('langgraph', 'sequence-tasks', steps),
      }),
    },
    rounds,
  );
  const { floor, reprise, graph, tasks } = results;
  const row = (name: string, { ms, coldMs, commits }: typeof floor) => [
    name,
    rate(steps, ms),
    rate(steps, coldMs),
    percent(floor.ms / ms),
    percent(floor.coldMs / coldMs),
    count(commits),
  ];
  const ratio = floor.ms / reprise.ms;
  return {
    title: `${count(steps)} steps in sequence, each durable before the next starts`,
    body: table(
      ['', 'warm', 'in a fresh process', '% of the floor, warm', '% of the floor, fresh', 'commits'],
      [
        row('floor: SQLite alone, one row per commit', floor),
        row('**Reprise**', reprise),
        ...(graph && tasks
          ? [row('LangGraph, one node in a loop', graph), row('LangGraph, tasks', tasks)]
          : []),
      ],
    ),
    notes:
      graph && tasks
        ? [
            `Reprise runs at ${times(Math.min(graph.ms, tasks.ms) / reprise.ms)} the better rate of LangGraph.`,
          ]
        : [],
    targets: [
      {
        what: 'a sequence runs at 70 % of the floor or more, warm',
        value: ratio,
        least: 0.7,
        tolerance: 0.75,
        show: percent,
      },
    ],
  };
};
