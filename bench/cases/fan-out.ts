import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, rate, table, times } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const workers = 1000;

/** Steps that end together are committed together, so this shows the cost of an engine without its commits. */
export const fanOut: BenchCase = ({ peer, rounds }) => {
  const results = alternate(
    {
      floor: () => inChild('floor', 'rows', workers, 100),
      wide: () => inChild('reprise', 'run', 'fanOut', workers, workers),
      narrow: () => inChild('reprise', 'run', 'fanOut', workers, 10),
      ...(peer && {
        graph: () => inChild('langgraph', 'fan-out-graph', workers, workers),
        tasks: () => inChild('langgraph', 'fan-out-tasks', workers, workers),
        narrowGraph: () => inChild('langgraph', 'fan-out-graph', workers, 10),
        narrowTasks: () => inChild('langgraph', 'fan-out-tasks', workers, 10),
      }),
    },
    rounds,
  );
  const { floor, wide, narrow, graph, tasks, narrowGraph, narrowTasks } = results;
  const best = graph && tasks && Math.min(graph.ms, tasks.ms);
  const bestNarrow = narrowGraph && narrowTasks && Math.min(narrowGraph.ms, narrowTasks.ms);
  const row = (name: string, { ms, coldMs, commits }: typeof floor, peerMs?: number) => [
    name,
    rate(workers, ms),
    rate(workers, coldMs),
    peerMs ? times(peerMs / ms) : '',
    count(commits),
  ];
  const peerRow = (name: string, figures?: typeof floor) => (figures ? [row(name, figures)] : []);
  return {
    title: `Fan-out of ${count(workers)} with a join`,
    body: table(
      ['', 'warm', 'in a fresh process', 'vs. better rate of LangGraph, warm', 'commits'],
      [
        row('floor: SQLite alone, 100 rows per commit', floor, best),
        row('**Reprise**, all in parallel', wide, best),
        row('**Reprise**, 10 in parallel (the default)', narrow, bestNarrow),
        ...peerRow('LangGraph, `Send`, all in parallel', graph),
        ...peerRow('LangGraph, tasks, all in parallel', tasks),
        ...peerRow('LangGraph, `Send`, 10 in parallel', narrowGraph),
        ...peerRow('LangGraph, tasks, 10 in parallel', narrowTasks),
      ],
    ),
    targets: best
      ? [
          {
            what: 'a fan-out runs at 10 times the better rate of LangGraph or more, warm',
            value: best / wide.ms,
            least: 10,
            tolerance: 0.5,
            show: times,
          },
        ]
      : [],
  };
};
