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
  const { agentMs, worktreeMs, inProjectMs, inWorktreesMs } = result;
  const overhead = {
    inProject: inProjectMs - agentMs,
    inWorktrees: inWorktreesMs - agentMs - worktreeMs,
  };
  return {
    title: `A step with an agent, ${count(turns * steps)} one after another, in a repository of ${count(files)} files`,
    body: table(
      ['', 'one step', 'beyond the agent and the worktree'],
      [
        ['the agent alone: a shell that writes a file', ms(agentMs), ''],
        ['plain git: `worktree add`', ms(worktreeMs), ''],
        ["**Reprise**, in the project's folder", ms(inProjectMs), ms(overhead.inProject)],
        ['**Reprise**, in a worktree, committed', ms(inWorktreesMs), ms(overhead.inWorktrees)],
      ],
    ),
    notes: [
      'Each step has three to five durable events, a log, and processes that are looked for until none is left.',
    ],
    targets: [
      {
        what: 'a step takes 50 ms beyond its agent',
        value: overhead.inProject,
        most: 50,
        tolerance: 1.5,
        show: ms,
      },
      {
        what: 'a step takes 50 ms beyond its agent and its worktree, committed',
        value: overhead.inWorktrees,
        most: 50,
        tolerance: 1.5,
        show: ms,
      },
    ],
  };
}
