import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, ms, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const turns = 5;
const steps = 4;
const files = 300;

/** Overhead of an agent step over its agent. */
export const agentSteps: BenchCase = ({ rounds }) => {
  const { result } = alternate(
    { result: () => inChild('agent-steps', 'compare', turns, steps, files) },
    rounds,
  );
  const of = (statistic: 'Mean' | 'Median') => {
    const agent = result[`agentMs${statistic}` as const];
    const worktree = result[`worktreeMs${statistic}` as const];
    const inProject = result[`inProjectMs${statistic}` as const];
    const inWorktrees = result[`inWorktreesMs${statistic}` as const];
    const overhead = { inProject: inProject - agent, inWorktrees: inWorktrees - agent - worktree };
    return { agent, worktree, inProject, inWorktrees, overhead };
  };
  const mean = of('Mean');
  const median = of('Median');
  const row = (name: string, part: Exclude<keyof typeof mean, 'overhead'>) => [
    name,
    ms(mean[part]),
    ms(median[part]),
  ];
  const beyond = (part: keyof typeof mean.overhead) => [ms(mean.overhead[part]), ms(median.overhead[part])];
  return {
    title: `Agent steps, ${count(turns * steps)} in sequence, in a repository of ${count(files)} files`,
    body: table(
      ['', 'one step, mean', 'median', 'overhead over agent and worktree, mean', 'median'],
      [
        [...row('the agent alone: a shell that writes a file', 'agent'), '', ''],
        [...row('plain git: `worktree add`', 'worktree'), '', ''],
        [...row('**Reprise**, in the project folder', 'inProject'), ...beyond('inProject')],
        [...row('**Reprise**, in a worktree, committed', 'inWorktrees'), ...beyond('inWorktrees')],
      ],
    ),
    notes: [
      `Means and medians of ${count(turns)} rounds of ${count(steps)} steps. The targets apply to the means.`,
      'Each step writes three to five durable events and a log, and checks for leftover processes until none is left.',
    ],
    targets: [
      {
        what: 'a step adds at most 50 ms to its agent',
        value: mean.overhead.inProject,
        most: 50,
        tolerance: 1.5,
        show: ms,
      },
      {
        what: 'a step with a worktree and a commit adds at most 50 ms to its agent and `worktree add`',
        value: mean.overhead.inWorktrees,
        most: 50,
        tolerance: 1.5,
        show: ms,
      },
    ],
  };
};
