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

describe('how a task stands', () => {
  test.each(['draft', 'review', 'blocked', 'done'] as const)('is what is written: %s', state => {
    expect(textOf(aTask('a', { state }))).toBe(state);
  });

  test('is ready if nothing is against it', () => {
    const task = aTask('a');
    expect(taskStatusOf(task, around(task))).toEqual({
      word: 'ready',
      text: 'ready',
      agent: { name: 'implement', by: 'default' },
    });
  });

  test('depends on who holds it', () => {
    expect(textOf(aTask('a'), {})).toBe('held by anna');
    expect(textOf(aTask('a'), { runStatus: 'suspended', version: 'older' })).toBe('held by anna');
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
  ] as const)('depends on what came of it: %j', (claim, text) => {
    expect(textOf(aTask('a'), claim)).toBe(text);
    expect(textOf(aTask('a', { version: 'another' }), claim)).toBe('ready');
  });

  test('is landed also when the text says done since', () => {
    expect(textOf(aTask('a', { version: 'a-2', state: 'done' }), { state: 'landed' })).toBe('landed');
    expect(textOf(aTask('a', { version: 'a-2', state: 'done' }), { state: 'failed' })).toBe('done');
  });

  test('says what it waits for', () => {
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
    ['is written as done', [aTask('a', { state: 'done' })], []],
    ['has landed', [aTask('a')], [aClaim('a', { state: 'landed' })]],
    ['has landed and is gone', [], [aClaim('a', { state: 'landed' })]],
  ] as const)('does not wait for what %s', (_, others, claims) => {
    const task = aTask('z', { needs: ['a'] });
    expect(taskStatusOf(task, around(task, { tasks: [task, ...others], claims })).word).toBe('ready');
  });

  test.each([
    ['has landed and was written anew', [aTask('a', { version: 'a-2' })], [aClaim('a', { state: 'landed' })]],
    ['was delivered', [aTask('a')], [aClaim('a', { state: 'delivered' })]],
    ['failed and is gone', [], [aClaim('a', { state: 'failed' })]],
  ] as const)('waits for what %s', (_, others, claims) => {
    const task = aTask('z', { needs: ['a'] });
    expect(taskStatusOf(task, around(task, { tasks: [task, ...others], claims })).word).toBe('waiting');
  });

  test('needs somebody who can take it', () => {
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
    expect(status({ id: 'x' }).text).toBe('invalid: it names no agent, and there is none for such tasks');
  });
});

test('everything that has a name is listed once, by name', () => {
  const task = aTask('b', { needs: ['nobody'] });
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
    ['b', undefined, 'waiting for `nobody` (no such task)'],
  ]);
});
