import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { claimStates } from '../../store/claims.ts';
import { aClaim, aTask } from '../test-support.ts';
import { candidatesOf, pickTask } from './pick.ts';
import type { TaskBoard } from './status.ts';
import { priorities, type Task, taskStates } from './task.ts';

const among = (tasks: readonly Task[], given: Partial<TaskBoard> = {}): TaskBoard => ({
  tasks,
  claims: [],
  agents: ['implement', 'fix-readme'],
  defaultAgent: 'implement',
  ...given,
});

const order = (tasks: readonly Task[]): readonly string[] =>
  candidatesOf(among(tasks)).map(({ task }) => task.id);

describe('the built-in dispatcher', () => {
  test('picks by priority, then by the number of waiting tasks, then by id', () => {
    expect(order([aTask('a'), aTask('b', { priority: 'P0' }), aTask('c', { priority: 'P3' })])).toEqual([
      'b',
      'a',
      'c',
    ]);
    const chain = [aTask('x', { needs: ['b'] }), aTask('y', { needs: ['x'] }), aTask('z', { needs: ['a'] })];
    expect(order([aTask('a'), aTask('b'), aTask('c'), ...chain])).toEqual(['b', 'a', 'c']);
    const idle = [aTask('x', { needs: ['b'], state: 'draft' }), aTask('y', { needs: ['b'], state: 'done' })];
    expect(order([aTask('b'), aTask('a'), ...idle])).toEqual(['a', 'b']);
  });

  test('gives the reason for its choice', () => {
    const why = (...tasks: Task[]) => {
      const picked = pickTask(among(tasks));
      return `${picked.kind === 'task' ? `${picked.task.id} by ${picked.agent}: ` : ''}${picked.why}`;
    };
    const other = aTask('z', { priority: 'P3' });
    expect(why(aTask('fix-readme', { priority: 'P1' }), other, aTask('y'))).toBe(
      'fix-readme by fix-readme: P1, the first of 3 ready tasks; the agent has the name of the task',
    );
    expect(why(aTask('a', { agent: 'implement' }))).toBe(
      'a by implement: P2, the only ready task; the task names the agent',
    );
    expect(why(aTask('a'), aTask('b', { needs: ['a'] }))).toBe(
      'a by implement: P2, the only ready task; 1 task waits for it; the default agent',
    );
    expect(why()).toBe('there are no tasks');
    expect(
      why(aTask('a', { state: 'draft' }), aTask('b', { needs: ['a'] }), aTask('c', { state: 'draft' })),
    ).toBe('no task is ready: 1 waiting, 2 draft');
  });

  test('skips tasks that cannot be claimed, and reports why', () => {
    const tasks = [
      aTask('a', { priority: 'P0', agent: 'ghost' }),
      aTask('b', { priority: 'P0' }),
      aTask('c', { priority: 'P0' }),
      aTask('d', { priority: 'P0', needs: ['c'] }),
      aTask('e'),
      aTask('f', { state: 'draft' }),
      aTask('g'),
    ];
    const claims = [
      aClaim('b'),
      aClaim('c', { state: 'failed', reason: 'no luck' }),
      aClaim('g', { state: 'landed' }),
    ];
    const picked = pickTask(among(tasks, { claims }));
    expect(picked).toMatchObject({ kind: 'task', task: { id: 'e' }, seen: 0 });
    expect(picked.waiting.map(({ task, why }) => `${task.id} ${why}`)).toEqual([
      'a invalid: there is no agent `ghost`',
      'b held by anna',
      'c failed: no luck',
      'd waiting for `c` (failed)',
    ]);
  });

  test('returns the token of the claim that it has seen', () => {
    const claims = [aClaim('a', { state: 'released', token: 7 })];
    expect(pickTask(among([aTask('a')], { claims }))).toMatchObject({ seen: 7 });
    const ended = [aClaim('a', { runStatus: 'cancelled', token: 8 })];
    expect(pickTask(among([aTask('a')], { claims: ended }))).toMatchObject({ seen: 8 });
  });

  test('never picks a task that needs itself, directly or in a cycle', () => {
    const tasks = [aTask('a', { needs: ['b'] }), aTask('b', { needs: ['a'] }), aTask('c', { needs: ['c'] })];
    expect(pickTask(among(tasks)).kind).toBe('nothing');
  });
});

describe('the built-in dispatcher on any board', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const name = fc.constantFrom(...names);
  const version = fc.constantFrom('1', '2');
  const task = fc
    .record({
      id: name,
      priority: fc.constantFrom(...priorities),
      state: fc.oneof(
        { weight: 3, arbitrary: fc.constant('ready' as const) },
        { weight: 1, arbitrary: fc.constantFrom(...taskStates) },
      ),
      needs: fc.array(name, { maxLength: 2 }),
      agent: fc.constantFrom(undefined, 'implement', 'ghost'),
      version,
    })
    .map(given => aTask(given.id, given));
  const claim = fc
    .record({
      task: name,
      state: fc.constantFrom(...claimStates),
      version,
      runStatus: fc.constantFrom('running' as const, 'failed' as const, 'waiting' as const),
      token: fc.nat(),
    })
    .map(given => aClaim(given.task, given));
  const board = fc
    .record({
      tasks: fc.uniqueArray(task, { selector: ({ id }) => id }),
      claims: fc.uniqueArray(claim, { selector: ({ task }) => task }),
    })
    .map(({ tasks, claims }) => among(tasks, { claims }));

  test('picks a task that is ready, free and untried, with all its needs done', () => {
    fc.assert(
      fc.property(board, given => {
        const picked = pickTask(given);
        if (picked.kind === 'nothing') return;
        const { task, agent, seen } = picked;
        const claimOf = (id: string) => given.claims.find(claim => claim.task === id);
        const claim = claimOf(task.id);
        expect(task.state).toBe('ready');
        expect([...given.agents]).toContain(agent);
        expect(seen).toBe(claim?.token ?? 0);
        if (claim?.state === 'held') expect(claim.runStatus).toBe('failed');
        else if (claim && claim.version === task.version) expect(claim.state).toBe('released');
        for (const need of task.needs) {
          const needed = given.tasks.find(({ id }) => id === need);
          if (needed?.state !== 'done') expect(claimOf(need)?.state).toBe('landed');
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('picks the most urgent of the tasks that could be claimed', () => {
    fc.assert(
      fc.property(board, given => {
        const picked = pickTask(given);
        const candidates = candidatesOf(given);
        expect(picked.kind === 'task').toBe(candidates.length > 0);
        if (picked.kind === 'task')
          for (const { task } of candidates) expect(task.priority >= picked.task.priority).toBe(true);
      }),
    );
  });

  test('does not depend on the order of tasks and claims', () => {
    fc.assert(
      fc.property(board, given => {
        const { tasks, claims } = given;
        expect(pickTask({ ...given, tasks: tasks.toReversed(), claims: claims.toReversed() })).toEqual(
          pickTask(given),
        );
      }),
    );
  });

  test('gets every untried task done that is not blocked, if every picked task lands', () => {
    fc.assert(
      fc.property(fc.uniqueArray(task, { selector: ({ id }) => id }), tasks => {
        let given = among(tasks);
        const landed: string[] = [];
        for (let picked = pickTask(given); picked.kind === 'task'; picked = pickTask(given)) {
          const { id, version } = picked.task;
          landed.push(id);
          given = { ...given, claims: [...given.claims, aClaim(id, { state: 'landed', version })] };
        }
        expect(new Set(landed).size).toBe(landed.length);
        for (const { task, why } of pickTask(given).waiting)
          expect([task.id, why]).toEqual([
            task.id,
            expect.stringMatching(/^(waiting for|invalid: there is no agent)/),
          ]);
      }),
    );
  });
});
