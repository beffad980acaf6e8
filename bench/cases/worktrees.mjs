import { inChild } from '../lib/child.mjs';
import { count, ms, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const workspaces = 50;
const files = 300;
const lanes = 5;

const ratio = value => `${value.toFixed(2)} times`;

/** What locks, records and checks cost beside the git commands that nobody can do without. */
export function worktrees({ rounds }) {
  const { result } = alternate(
    { result: () => inChild('worktrees', 'compare', workspaces, files, lanes) },
    rounds,
  );
  const total = name => result[`${name}MakeMs`] + result[`${name}RemoveMs`];
  const row = (title, name) => [
    title,
    ms(result[`${name}MakeMs`]),
    ms(result[`${name}RemoveMs`]),
    ms(total(name)),
    name === 'plain' ? '' : ratio(total(name) / total('plain')),
  ];
  const target = (what, name) => ({
    what,
    value: total(name) / total('plain'),
    most: 1.2,
    tolerance: 1.25,
    show: ratio,
  });
  return {
    title: `${count(workspaces)} worktrees of ${count(files)} files, made and removed`,
    body: table(
      ['', 'making', 'removing', 'both', 'of plain git'],
      [
        row('`git worktree add` and `git worktree remove`, one after another', 'plain'),
        row('**Reprise**, one after another', 'single'),
        row(`**Reprise**, ${lanes} lanes at once`, 'lanes'),
      ],
    ),
    notes: [
      'Reprise also takes a lock that other processes respect, records the branch, checks for commits that are nowhere else, and deletes the branch, which plain git leaves.',
    ],
    targets: [
      target('worktrees one after another take 1.2 times what plain git does', 'single'),
      target('worktrees that lanes ask for at once take 1.2 times what plain git does', 'lanes'),
    ],
  };
}
