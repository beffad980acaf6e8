import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, ms, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const workspaces = 50;
const files = 300;
const lanes = 5;

type Contender = 'plain' | 'single' | 'lanes';

const ratio = (value: number) => `${value.toFixed(2)} times`;

/** Cost of locks, records and checks on top of the git commands themselves. */
export const worktrees: BenchCase = ({ rounds }) => {
  const { result } = alternate(
    { result: () => inChild('worktrees', 'compare', workspaces, files, lanes) },
    rounds,
  );
  const makeMs = (name: Contender) => result[`${name}MakeMs` as const];
  const removeMs = (name: Contender) => result[`${name}RemoveMs` as const];
  const total = (name: Contender) => makeMs(name) + removeMs(name);
  const row = (title: string, name: Contender) => [
    title,
    ms(makeMs(name)),
    ms(removeMs(name)),
    ms(total(name)),
    name === 'plain' ? '' : ratio(total(name) / total('plain')),
  ];
  const target = (what: string, name: Contender) => ({
    what,
    value: total(name) / total('plain'),
    most: 1.2,
    tolerance: 1.25,
    show: ratio,
  });
  return {
    title: `${count(workspaces)} worktrees of ${count(files)} files, created and removed`,
    body: table(
      ['', 'create', 'remove', 'both', 'relative to plain git'],
      [
        row('`git worktree add` and `git worktree remove`, one after another', 'plain'),
        row('**Reprise**, one after another', 'single'),
        row(`**Reprise**, ${lanes} lanes in parallel`, 'lanes'),
      ],
    ),
    notes: [
      'Reprise also takes a lock that other processes respect, records the branch, checks for commits that exist nowhere else, and deletes the branch, which plain git keeps.',
    ],
    targets: [
      target('worktrees one after another take at most 1.2 times as long as plain git', 'single'),
      target('worktrees from parallel lanes take at most 1.2 times as long as plain git', 'lanes'),
    ],
  };
};
