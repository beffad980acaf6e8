import { inChild } from '../lib/child.mjs';
import { count, ms, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const turns = 5;
const steps = 4;
const files = 300;

/** What a step with an agent takes beyond what its agent takes. */
export function agentSteps({ rounds }) {
  const { result } = alternate(
    { result: () => inChild('agent-steps', 'compare', turns, steps, files) },
    rounds,
  );
  const of = statistic => {
    const [agent, worktree, inProject, inWorktrees] = [
      'agentMs',
      'worktreeMs',
      'inProjectMs',
      'inWorktreesMs',
    ].map(name => result[`${name}${statistic}`]);
    const overhead = { inProject: inProject - agent, inWorktrees: inWorktrees - agent - worktree };
    return { agent, worktree, inProject, inWorktrees, overhead };
  };
  const mean = of('Mean');
  const median = of('Median');
  const row = (name, part) => [name, ms(mean[part]), ms(median[part])];
  const beyond = part => [ms(mean.overhead[part]), ms(median.overhead[part])];
  return {
    title: `A step with an agent, ${count(turns * steps)} one after another, in a repository of ${count(files)} files`,
    body: table(
      ['', 'one step, mean', 'median', 'beyond the agent and the worktree, mean', 'median'],
      [
        [...row('the agent alone: a shell that writes a file', 'agent'), '', ''],
        [...row('plain git: `worktree add`', 'worktree'), '', ''],
        [...row("**Reprise**, in the project's folder", 'inProject'), ...beyond('inProject')],
        [...row('**Reprise**, in a worktree, committed', 'inWorktrees'), ...beyond('inWorktrees')],
      ],
    ),
    notes: [
      `Means and medians of ${count(turns)} turns of ${count(steps)} steps; the targets are held to the means.`,
      'Each step has three to five durable events, a log, and processes that are looked for until none is left.',
    ],
    targets: [
      {
        what: 'a step takes 50 ms beyond its agent',
        value: mean.overhead.inProject,
        most: 50,
        tolerance: 1.5,
        show: ms,
      },
      {
        what: 'a step takes 50 ms beyond its agent and its worktree, committed',
        value: mean.overhead.inWorktrees,
        most: 50,
        tolerance: 1.5,
        show: ms,
      },
    ],
  };
}
