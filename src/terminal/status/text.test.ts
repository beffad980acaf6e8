import { describe, expect, it } from 'vitest';
import { toTimestamp } from '../../core/time.ts';
import type { WorkerRecord } from '../../store/runs.ts';
import { recordedCost, spentTogether, unknownSession } from '../../view/index.ts';
import { taskStatusesOf } from '../../worker/tasks/status.ts';
import { aClaim, aTask } from '../../worker/test-support.ts';
import { noon } from '../test-support.ts';
import { displayWidth } from '../text.ts';
import { changeMark, describeStatus, type StatusFacts, type WorkerFact } from './facts.ts';
import { fittingLines, type StatusOptions, statusLines } from './text.ts';

const aWorker = (name: string, given: Partial<WorkerRecord> = {}): WorkerRecord => ({
  incarnation: name,
  host: 'here',
  pid: 42,
  processStart: '1',
  name,
  branch: 'main',
  startedAt: toTimestamp(noon),
  beatAt: toTimestamp(noon + 57_000),
  state: 'sleeping',
  costUsd: 0,
  ...given,
});

const fact = (worker: WorkerRecord, given: Partial<WorkerFact> = {}): WorkerFact => ({
  worker,
  life: 'alive',
  spent: recordedCost(worker),
  ...given,
});

const nothing: StatusFacts = {
  branch: 'main',
  main: '3f2c1ab0d2'.repeat(4),
  workers: [],
  tasks: [],
  problems: [],
  uncommitted: [],
  howToAdd: 'write one and commit it: issues/<name>.md',
  locks: [],
  abandoned: [],
  parked: [],
};

const busy: StatusFacts = {
  ...nothing,
  workers: [
    fact(aWorker('worker-1', { state: 'working', task: 'fix-readme', agent: 'implement', runId: 'k7x2' }), {
      spent: recordedCost({ costUsd: 0.12 }),
      lane: { step: 'work', doing: 'agent implement (claude) started' },
    }),
    fact(aWorker('ärbeiter-日本', { note: 'no task is ready: 1 held' }), {
      spent: spentTogether([recordedCost({ costUsd: 0.5 }), unknownSession]),
    }),
    fact(aWorker('worker-3', { state: 'working', task: 'gone', runId: 'b8y3', branch: 'next' }), {
      life: 'dead',
    }),
    fact(aWorker('worker-4', { state: 'landing', beatAt: toTimestamp(noon - 60_000) }), {
      life: 'stalled',
      stalledMs: 120_000,
    }),
  ],
  tasks: taskStatusesOf({
    tasks: [
      aTask('add-tests', { needs: ['fix-readme'] }),
      aTask('fix-readme', { priority: 'P0' }),
      aTask('old', { state: 'done' }),
      aTask('try-again'),
      aTask('日本語'),
    ],
    problems: [
      { task: 'odd', message: 'unknown key `prio`' },
      { message: 'issues/huge.md is too large for a task' },
    ],
    claims: [
      aClaim('fix-readme', { by: 'worker-1', runId: 'k7x2' }),
      aClaim('try-again', { state: 'parked', branch: 'reprise/parked/try-again', reason: 'the tests fail' }),
    ],
    agents: ['implement'],
    defaultAgent: 'implement',
  }),
  problems: [{ message: 'issues/huge.md is too large for a task' }],
  uncommitted: [
    { id: 'new', file: 'issues/new.md', isKnown: false },
    { id: 'old', file: 'issues/old.md', isKnown: true },
  ],
  locks: [
    { kind: 'agent', name: 'dispatch', place: 1, state: 'held', holder: 'worker-1', waiting: ['worker-4'] },
    { kind: 'agent', name: 'claude', place: 2, state: 'abandoned', waiting: [] },
    { kind: 'repository', name: 'land', state: 'held', holder: 'process 7 on there', waiting: ['a', 'b'] },
  ],
  abandoned: [
    {
      run: {
        runId: 'b8y3',
        workflow: 'worker',
        status: 'running',
        startedAt: toTimestamp(noon),
        endedAt: null,
        owner: null,
      },
      task: 'gone',
      by: 'worker-3',
    },
  ],
  parked: [
    {
      branch: 'reprise/parked/try-again',
      commit: 'ab'.repeat(20),
      at: '2026-01-15T12:00:00+00:00',
      subject: 'Try it',
      task: 'try-again',
    },
  ],
};

const options: StatusOptions = { color: false, columns: 80, now: noon + 60_000 };
const shown = (facts: StatusFacts, given: Partial<StatusOptions> = {}) =>
  statusLines(facts, { ...options, ...given }).join('\n');

describe('the status', () => {
  it('shows how to start without workers and tasks', () => {
    expect(shown(nothing)).toMatchInlineSnapshot(`
      "no workers on main (3f2c1ab0d2)
       start one: reprise worker

      no tasks on main
       write one and commit it: issues/<name>.md"
    `);
    expect(shown({ ...nothing, main: null }, { commandSuffix: ' --state-dir x' })).toMatchInlineSnapshot(`
      "no workers on main (no commits yet)
       start one: reprise worker --state-dir x

      no tasks on main
       write one and commit it: issues/<name>.md"
    `);
  });

  it('shows workers, tasks, locks, abandoned runs and parked work', () => {
    expect(shown(busy)).toMatchInlineSnapshot(`
      "3 workers on main (3f2c1ab0d2), 1 dead
       ●  worker-1       working   3s ago      fix-readme  implement  $0.12
           work: agent implement (claude) started; run k7x2
       ◔  ärbeiter-日本  sleeping  3s ago                             >= $0.50
           no task is ready: 1 held
       ✗  worker-3       dead      3s ago      gone
           on next; process 42 on here died; the next worker takes over run b8y3
       ◔  worker-4       stalled   2m 00s ago
       process 42 on here stalled 2m 00s ago; continue it: kill -CONT 42; end it:
       kill -9 42

      tasks: 1 ready, 1 held, 1 waiting, 1 parked, 1 invalid, 1 done
       ◔  add-tests   P2  waiting for \`fix-readme\` (held)
       ●  fix-readme  P0  held by worker-1
       ✗  odd             invalid: unknown key \`prio\`
       ◔  try-again   P2  parked on reprise/parked/try-again: the tests fail
       ·  日本語      P2  ready
       ✗  issues/huge.md is too large for a task
       ◔  issues/new.md is not on main yet
       ◔  the changes to issues/old.md are not on main yet
       commit it: git add issues/ && git commit

      locks
       ●  dispatch  held by worker-1; worker-4 waiting
       ·  claude 2  abandoned: its holder died, and the next process takes it over
       ●  land      held by process 7 on there; a, b waiting

      abandoned runs
       ◔  run b8y3  gone  started 1m 00s ago by worker-3
       the next worker takes over: reprise worker

      parked work that could not land
       ◔  reprise/parked/try-again  ababababab  Try it
       inspect it: git log main..reprise/parked/try-again"
    `);
  });

  it('fits a narrow terminal without Unicode', () => {
    expect(shown(busy, { columns: 40, unicode: false })).toMatchInlineSnapshot(`
      "3 workers on main (3f2c1ab0d2), 1 dead
       *  worker-1       working   3s ago
           work: agent implement (claude)...
       ?  ärbeiter-日本  sleeping  3s ago
           no task is ready: 1 held
       x  worker-3       dead      3s ago
           on next; process 42 on here die...
       ?  worker-4       stalled   2m 00s ago
       process 42 on here stalled 2m 00s ago;
       continue it: kill -CONT 42; end it:
       kill -9 42

      tasks: 1 ready, 1 held, 1 waiting, 1...
       ?  add-tests   P2  waiting for \`fix...
       *  fix-readme  P0  held by worker-1
       x  odd             invalid: unknown...
       ?  try-again   P2  parked on repris...
       .  日本語      P2  ready
       x  issues/huge.md is too large for...
       ?  issues/new.md is not on main yet
       ?  the changes to issues/old.md are...
       commit it: git add issues/ && git
       commit

      locks
       *  dispatch  held by worker-1; work...
       .  claude 2  abandoned: its holder...
       *  land      held by process 7 on t...

      abandoned runs
       ?  run b8y3  gone  started 1m 00s a...
       the next worker takes over: reprise
       worker

      parked work that could not land
       ?  reprise/park...  ababababab  Try it
       inspect it: git log
       main..reprise/parked/try-again"
    `);
  });

  it('counts dead workers separately, and shows how to start a worker if all are dead', () => {
    const dead = busy.workers.filter(({ life }) => life === 'dead');
    expect(shown({ ...nothing, workers: dead })).toMatchInlineSnapshot(`
      "no workers on main (3f2c1ab0d2)
       start one: reprise worker
       ✗  worker-3  dead  3s ago  gone
           on next; process 42 on here died; the next worker takes over run b8y3

      no tasks on main
       write one and commit it: issues/<name>.md"
    `);
  });

  it('is never wider than the terminal', () => {
    for (let columns = 20; columns < 130; columns++)
      for (const line of statusLines(busy, { ...options, columns }))
        expect(displayWidth(line)).toBeLessThan(columns);
  });

  it('removes control characters', () => {
    const evil = 'x\u001B[2Jy\nz';
    const worker = aWorker(evil, { task: evil, agent: evil, note: evil, branch: evil });
    const tasks = taskStatusesOf({ tasks: [aTask(evil)], claims: [aClaim(evil, { by: evil })], agents: [] });
    const locks = [
      { kind: 'repository', name: 'land', state: 'held', holder: evil, waiting: [evil] },
    ] as const;
    const text = shown({ ...nothing, branch: evil, workers: [fact(worker)], tasks, locks });
    expect(text).not.toContain('\u001B');
    expect(text.split('\n').filter(line => line.startsWith('z'))).toEqual([]);
  });

  it('is cut to the height of the terminal', () => {
    const lines = statusLines(busy, options);
    const fitting = fittingLines(lines, { rows: 10 });
    expect(fitting).toHaveLength(9);
    expect(fitting.at(-1)).toBe(`… ${lines.length - 8} more lines`);
    expect(fittingLines(lines, { rows: lines.length + 1 })).toEqual(lines);
    expect(fittingLines(lines, { rows: 1 })).toHaveLength(1);
  });
});

describe('the status as JSON', () => {
  it('has every field, with null for unknown values', () => {
    const { workers, tasks, locks, abandoned, parked, branch, main } = describeStatus(busy, options.now);
    expect({ branch, main }).toEqual({ branch: 'main', main: nothing.main });
    expect(workers[0]).toMatchObject({
      name: 'worker-1',
      life: 'alive',
      run: 'k7x2',
      step: 'work',
      cost: 0.12,
    });
    expect(workers[1]).toMatchObject({ task: null, run: null, beat_age_ms: 3000 });
    expect(tasks.map(({ id, standing: status }) => [id, status])).toEqual([
      ['add-tests', 'waiting'],
      ['fix-readme', 'held'],
      ['odd', 'invalid'],
      ['old', 'done'],
      ['try-again', 'parked'],
      ['日本語', 'ready'],
    ]);
    expect(locks[2]).toEqual({
      kind: 'repository',
      name: 'land',
      place: null,
      stalled: null,
      state: 'held',
      holder: 'process 7 on there',
      waiting: ['a', 'b'],
    });
    expect(abandoned).toMatchObject([{ run: 'b8y3', task: 'gone', by: 'worker-3', lease_until: null }]);
    expect(parked).toMatchObject([{ branch: 'reprise/parked/try-again', task: 'try-again' }]);
  });

  it('treats everything except a heartbeat as a change', () => {
    const with1 = (given: Partial<WorkerRecord>) => ({ ...nothing, workers: [fact(aWorker('w', given))] });
    const before = changeMark(with1({}));
    expect(changeMark(with1({ beatAt: toTimestamp(noon) }))).toBe(before);
    expect(changeMark(with1({ state: 'working' }))).not.toBe(before);
    expect(changeMark({ ...with1({}), main: null })).not.toBe(before);
  });
});
