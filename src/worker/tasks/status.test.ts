import { describe, expect, test } from 'vitest';
import type { Claim } from '../../store/claims.ts';
import { aClaim, aTask } from '../test-support.ts';
import { type TaskBoard, taskStatusesOf, taskStatusOf } from './status.ts';
import type { Task } from './task.ts';

const around = (task: Task, given: Partial<TaskBoard> = {}): TaskBoard => ({
  tasks: [task],
  claims: [],
  agents: ['implement', 'review'],
  defaultAgent: 'implement',
  ...given,
});

const textOf = (task: Task, claim?: Partial<Claim>): string =>
  taskStatusOf(task, around(task, claim ? { claims: [aClaim(task.id, claim)] } : {})).text;

describe('the status of a task', () => {
  test.each(['draft', 'review', 'blocked', 'done'] as const)(
    'is the state in its front matter: %s',
    state => {
      expect(textOf(aTask('a', { state }))).toBe(state);
    },
  );

  test('is ready if no claim, need or missing agent prevents it', () => {
    const task = aTask('a');
    expect(taskStatusOf(task, around(task))).toEqual({
      word: 'ready',
      text: 'ready',
      agent: { name: 'implement', by: 'default' },
    });
  });

  test('is held while a run or a person holds the claim', () => {
    expect(textOf(aTask('a'), {})).toBe('held by anna');
    expect(textOf(aTask('a'), { runStatus: 'waiting', version: 'older' })).toBe(
      'held by anna, waiting for an approval',
    );
    expect(textOf(aTask('a'), { runId: null, runStatus: null, by: 'otto' })).toBe('held by otto');
    expect(textOf(aTask('a', { state: 'draft' }), {})).toBe('held by anna');
    expect(textOf(aTask('a'), { runStatus: 'failed' })).toBe('ready');
  });

  test.each([
    [{ state: 'landed', commit: '0123456789abcdef' }, 'landed as 0123456789'],
    [{ state: 'landed' }, 'landed'],
    [{ state: 'delivered', branch: 'reprise/task/a' }, 'delivered on reprise/task/a'],
    [
      { state: 'parked', branch: 'reprise/parked/a', reason: 'conflict in x' },
      'parked on reprise/parked/a: conflict in x',
    ],
    [{ state: 'failed', reason: 'the tests fail' }, 'failed: the tests fail'],
    [{ state: 'failed' }, 'failed'],
    [{ state: 'released', reason: 'stopped' }, 'ready'],
  ] as const)('follows from a settled claim on the same version: %j', (claim, text) => {
    expect(textOf(aTask('a'), claim)).toBe(text);
    expect(textOf(aTask('a', { version: 'another' }), claim)).toBe('ready');
  });

  test('stays landed when the state in the file becomes done', () => {
    expect(textOf(aTask('a', { version: 'a-2', state: 'done' }), { state: 'landed' })).toBe('landed');
    expect(textOf(aTask('a', { version: 'a-2', state: 'done' }), { state: 'failed' })).toBe('done');
  });

  test('names the tasks that it waits for', () => {
    const task = aTask('z', { needs: ['a', 'b', 'b', 'c', 'd', 'e', 'f'] });
    const tasks = [
      task,
      aTask('a', { state: 'done' }),
      aTask('b'),
      aTask('c', { state: 'draft' }),
      aTask('d'),
    ];
    const claims = [aClaim('d'), aClaim('f', { state: 'failed' })];
    const problems = [{ message: 'x', task: 'e' }];
    expect(taskStatusOf(task, around(task, { tasks, claims, problems })).text).toBe(
      'waiting for `b`, `c` (draft), `d` (held), `e` (invalid) and `f` (gone)',
    );
    expect(taskStatusOf(task, around(aTask('z', { needs: ['y'] }))).word).toBe('waiting');
    expect(textOf(aTask('z', { needs: ['y'] }))).toBe('waiting for `y` (no such task)');
  });

  test.each([
    ['is marked as done', [aTask('a', { state: 'done' })], []],
    ['has landed', [aTask('a')], [aClaim('a', { state: 'landed' })]],
    ['has landed and was removed', [], [aClaim('a', { state: 'landed' })]],
  ] as const)('does not wait for a task that %s', (_, others, claims) => {
    const task = aTask('z', { needs: ['a'] });
    expect(taskStatusOf(task, around(task, { tasks: [task, ...others], claims })).word).toBe('ready');
  });

  test.each([
    ['has landed and was changed', [aTask('a', { version: 'a-2' })], [aClaim('a', { state: 'landed' })]],
    ['was delivered', [aTask('a')], [aClaim('a', { state: 'delivered' })]],
    ['failed and was removed', [], [aClaim('a', { state: 'failed' })]],
  ] as const)('waits for a task that %s', (_, others, claims) => {
    const task = aTask('z', { needs: ['a'] });
    expect(taskStatusOf(task, around(task, { tasks: [task, ...others], claims })).word).toBe('waiting');
  });

  test('is invalid without an agent that can work on it', () => {
    const status = (given: Partial<Task>, defaultAgent?: string) => {
      const task = aTask('review', given);
      return taskStatusOf(task, { ...around(task), defaultAgent });
    };
    expect(status({ agent: 'implement' })).toMatchObject({ agent: { name: 'implement', by: 'task' } });
    expect(status({}, 'implement')).toMatchObject({ agent: { name: 'review', by: 'same-name' } });
    expect(status({ id: 'x' }, 'implement')).toMatchObject({ agent: { name: 'implement', by: 'default' } });
    expect(status({ agent: 'reviw' }).text).toBe(
      'invalid: there is no agent `reviw`; did you mean `review`?',
    );
    expect(status({ id: 'x' }, 'codex').text).toBe('invalid: there is no agent `codex`');
    expect(status({ id: 'x' }).text).toBe('invalid: it names no agent, and there is no default agent');
  });
});

test('every task with an id is listed once, sorted by id', () => {
  const task = aTask('b', { needs: ['ghost'] });
  const problems = [
    { message: 'no such task', task: 'b' },
    { message: 'not valid YAML', task: 'a' },
    { message: 'unknown key', task: 'a' },
    { message: 'not JSON' },
  ];
  const claims = [aClaim('a'), aClaim('gone')];
  expect(
    taskStatusesOf(around(task, { problems, claims })).map(({ id, claim, status }) => [
      id,
      claim?.by,
      status.text,
    ]),
  ).toEqual([
    ['a', 'anna', 'invalid: not valid YAML'],
    ['b', undefined, 'waiting for `ghost` (no such task)'],
  ]);
});
