import { expect, it } from 'vitest';
import { taskStatusesOf } from '../../worker/tasks/status.ts';
import { aClaim, aTask } from '../../worker/test-support.ts';
import { countsText, formatTask, formatTaskList, uncommittedTexts } from './tasks.ts';

const problems = [
  {
    task: 'odd',
    message: 'unknown key `prio`',
    hint: 'did you mean `priority`?',
    position: { file: 'issues/odd.md', line: 2, column: 1 },
    excerpt: '  prio: P1\n  ^^^^',
  },
];
const tasks = taskStatusesOf({
  tasks: [
    aTask('fix-readme', {
      priority: 'P0',
      title: 'Fix the readme',
      body: '# Fix the readme\n\nIt is wrong.\n',
    }),
    aTask('later', { needs: ['fix-readme', 'odd'], agent: 'review' }),
    aTask('日本語', { state: 'done', title: '日本語を直す' }),
    aTask('tried'),
  ],
  problems,
  claims: [
    aClaim('fix-readme', { by: 'worker-1', runId: 'k7x2' }),
    aClaim('tried', { state: 'failed', reason: 'it gave up', branch: 'reprise/parked/tried' }),
    aClaim('日本語', { state: 'landed', commit: 'ab'.repeat(20), runStatus: 'completed' }),
  ],
  agents: ['implement', 'review'],
  defaultAgent: 'implement',
});
const facts = { branch: 'main', problems };
const now = Date.parse('2026-01-01T00:00:42.000Z');
const textOf = (id: string) => {
  const task = tasks.find(each => each.id === id);
  return task && formatTask(task, facts, { color: false, now });
};

it('lists tasks with their status', () => {
  expect(formatTaskList(tasks, { color: false, columns: 80 })).toMatchInlineSnapshot(`
    "●  fix-readme  P0  held by worker-1                               Fix the readme
    ◔  later       P2  waiting for \`fix-readme\` (held) and \`odd\` (i…  Do later
    ✗  odd             invalid: unknown key \`prio\`
    ✗  tried       P2  failed on reprise/parked/tried: it gave up     Do tried
    ✓  日本語      P2  landed as ababababab                           日本語を直す
    "
  `);
  expect(formatTaskList(tasks, { color: false, columns: 40, unicode: false })).toMatchInlineSnapshot(`
    "*  fix-readme  P0  held b...  Fix the...
    ?  later       P2  waitin...  Do later
    x  odd             invali...
    x  tried       P2  failed...  Do tried
    v  日本語      P2  landed...  日本語...
    "
  `);
  expect(countsText(tasks)).toBe('1 held, 1 waiting, 1 failed, 1 invalid, 1 landed');
});

it('shows everything known about a task', () => {
  expect(textOf('fix-readme')).toMatchInlineSnapshot(`
    "fix-readme: Fix the readme
      status    held by worker-1
      priority  P0
      state     ready
      file      issues/fix-readme.md on main
      claim     held by worker-1 in run k7x2, 42s ago

    # Fix the readme

    It is wrong.
    "
  `);
  expect(textOf('later')).toMatchInlineSnapshot(`
    "later: Do later
      status    waiting for \`fix-readme\` (held) and \`odd\` (invalid)
      agent     review
      priority  P2
      state     ready
      needs     fix-readme, odd
      file      issues/later.md on main

    Do later
    "
  `);
  expect(textOf('tried')).toMatchInlineSnapshot(`
    "tried: Do tried
      status    failed on reprise/parked/tried: it gave up
      priority  P2
      state     ready
      file      issues/tried.md on main
      claim     failed by anna in run run-1, 42s ago: it gave up
      branch    reprise/parked/tried

    Do tried
    "
  `);
});

it('shows the problems of an invalid task', () => {
  expect(textOf('odd')).toMatchInlineSnapshot(`
    "odd
      status    invalid: unknown key \`prio\`

    issues/odd.md:2:1: unknown key \`prio\`
      prio: P1
      ^^^^
      hint: did you mean \`priority\`?
    "
  `);
});

it('shows that a claim was held once its run has ended', () => {
  const claims = [aClaim('a', { runStatus: 'failed' })];
  const [task] = taskStatusesOf({
    tasks: [aTask('a')],
    claims,
    agents: ['implement'],
    defaultAgent: 'implement',
  });
  expect(task && formatTask(task, facts, { color: false, now })).toMatch(
    /claim +was held by anna in run run-1/,
  );
});

it('names uncommitted files and the command that commits them', () => {
  const one = { id: 'my task', file: 'issues/my task.md', isKnown: false };
  expect(uncommittedTexts([one], 'main')).toEqual({
    notes: ['issues/my task.md is not on main yet'],
    hint: "commit it: git add 'issues/my task.md' && git commit",
  });
  const two = [one, { id: 'b', file: 'issues/b.md', isKnown: true }];
  expect(uncommittedTexts(two, 'main')).toEqual({
    notes: ['issues/my task.md is not on main yet', 'the changes to issues/b.md are not on main yet'],
    hint: 'commit it: git add issues/ && git commit',
  });
});
