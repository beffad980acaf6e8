import { expect, it } from 'vitest';
import { terminal } from '../../../test/support/terminal.ts';
import type { NewEvent } from '../../core/events.ts';
import {
  completed,
  historyOf,
  noon,
  runCompleted,
  runStarted,
  sessionStarted,
  started,
} from '../test-support.ts';
import { createLiveWorkersReporter } from './live.ts';

async function watch({ columns = 80, rows = 12, workers = 2 } = {}) {
  const screen = terminal(columns, rows);
  const clock = { now: noon, isStopping: false };
  let tick = () => {};
  const reporter = await createLiveWorkersReporter({
    stdout: screen.stdout,
    workers,
    branch: 'main',
    color: false,
    now: () => clock.now,
    isStopping: () => clock.isStopping,
    every: (_, call) => {
      tick = call;
      return () => {};
    },
  });
  for (let worker = 0; worker < workers; worker++)
    reporter.tell(worker, { kind: 'enlisted', name: `worker-${worker + 1}` });
  const events = (worker: number, ...entries: readonly NewEvent[]) =>
    reporter.observe(worker, { kind: 'events', events: historyOf(entries.map(event => [0, event])) });
  /** Clock times depend on the time zone. */
  const text = async () => (await screen.text()).replace(/\d\d:\d\d:\d\d/g, '<time>');
  return { screen, reporter, clock, events, text, tick: () => tick() };
}

const takes = (task: string): readonly NewEvent[] => [
  runStarted('worker', ['dispatch', 'work', 'land']),
  started('dispatch'),
  {
    type: 'transition.taken',
    step: 'dispatch',
    attempt: 1,
    data: { from: 'dispatch', to: 'coder', args: { task } },
  },
  completed('dispatch'),
  started('work'),
  sessionStarted('work'),
];

const lands = (subject: string): readonly NewEvent[] => [
  completed('work'),
  started('land'),
  {
    type: 'landing.ended',
    step: 'land',
    attempt: 1,
    data: {
      outcome: 'landed',
      onto: 'main',
      branch: 'b',
      commit: '3f2c1ab0d2'.repeat(4),
      commits: 1,
      subjects: [subject],
    },
  },
  completed('land'),
  runCompleted,
];

it('draws workers in place, below what stays', async () => {
  const { screen, reporter, clock, events, text, tick } = await watch();
  events(0, ...takes('fix-readme'));
  reporter.observe(0, {
    kind: 'agent',
    step: 'work',
    event: { type: 'text', text: 'Edit README.md\u001B[2J' },
  });
  reporter.tell(1, { kind: 'sleeps', why: 'no task is ready: 1 held' });
  for (let frame = 0; frame < 50; frame++) {
    clock.now += 100;
    tick();
  }
  expect(await text()).toMatchInlineSnapshot(`
    "<time> worker-2  sleeps: no task is ready: 1 held
    2 workers on main · 1 at work, 1 asleep
     ⠋  worker-1  fix-readme  coder  5.0s  Edit README.md
     ◔  worker-2                     5.0s  asleep: no task is ready: 1 held"
  `);
  events(0, ...lands('Fix the readme'));
  tick();
  expect(await text()).toMatchInlineSnapshot(`
    "<time> worker-2  sleeps: no task is ready: 1 held
    <time> worker-1  landed 3f2c1ab0d2 Fix the readme on main
    2 workers on main · 1 looking for a task, 1 asleep · 1 landed
     ⠙  worker-1  5.0s  looks for a task
     ◔  worker-2  5.0s  asleep: no task is ready: 1 held"
  `);
  expect(await screen.scrolledAway()).toEqual([]);
  await reporter.close();
});

it('leaves what stays behind when it is closed, and gives the cursor back', async () => {
  const { screen, reporter, events, text, tick } = await watch();
  screen.stdout.write('$ reprise worker\n');
  events(0, ...takes('a'), ...lands('Do a'));
  events(1, {
    type: 'landing.parked',
    step: 'land',
    attempt: 1,
    data: { branch: 'reprise/parked/b', commit: 'ab'.repeat(20), message: 'it conflicts' },
  });
  tick();
  reporter.tell(1, {
    kind: 'let-go',
    task: 'b',
    state: 'failed',
    reason: 'it conflicts',
    branch: 'reprise/parked/b',
    hint: 'look at it',
  });
  reporter.tell(0, { kind: 'ended', reason: 'stopped' });
  await reporter.close();
  expect(await text()).toMatchInlineSnapshot(`
    "$ reprise worker
    <time> worker-1  landed 3f2c1ab0d2 Do a on main
    <time> worker-2  parked on reprise/parked/b: it conflicts
    <time> worker-2  gives up b: it conflicts; what was done is on
    reprise/parked/b
    <time> worker-2  hint: look at it
    <time> worker-1  stops, as it was told to"
  `);
  const written = screen.written.join('');
  expect(written.lastIndexOf('\u001B[?25h')).toBeGreaterThan(written.lastIndexOf('\u001B[?25l'));
  expect(screen.listeners()).toBe(0);
});

it('says nothing twice that has not changed', async () => {
  const { reporter, text } = await watch({ workers: 1, rows: 20 });
  const problems = [{ message: 'issues/huge.md is too large for a task' }];
  for (let round = 0; round < 3; round++) {
    reporter.tell(0, { kind: 'problems', problems });
    reporter.observe(0, { kind: 'notice', message: 'waiting: all 1 places of the agent dispatch are taken' });
    reporter.tell(0, { kind: 'woke', what: 'claims' });
    reporter.tell(0, { kind: 'sleeps', why: 'no task is ready: 1 held' });
  }
  reporter.tell(0, { kind: 'sleeps', why: 'there are no tasks' });
  await reporter.close();
  expect(await text()).toMatchInlineSnapshot(`
    "<time> worker-1  issues/huge.md is too large for a task
    <time> worker-1  note: waiting: all 1 places of the agent dispatch are taken
    <time> worker-1  sleeps: no task is ready: 1 held
    <time> worker-1  sleeps: there are no tasks"
  `);
});

it('follows the size of the terminal', async () => {
  const { screen, reporter, events, tick } = await watch({ workers: 9, columns: 100, rows: 20 });
  events(7, ...takes('a-task-with-a-rather-long-name-that-has-to-be-cut'));
  reporter.observe(7, { kind: 'agent', step: 'work', event: { type: 'text', text: 'x'.repeat(300) } });
  tick();
  screen.resize(40, 6);
  expect(await screen.text()).toMatchInlineSnapshot(`
    "9 workers on main · 1 at work, 8 looki…
     ⠙  worker-1                 0ms
     ⠙  worker-2                 0ms
     ⠙  worker-8  a-tas…  coder  0ms
     … 6 more: 6 looking for a task"
  `);
  await reporter.close();
  expect(await screen.text()).toBe('');
});

it('shows that it is told to stop', async () => {
  const { screen, reporter, clock, tick } = await watch({ workers: 1 });
  clock.isStopping = true;
  tick();
  expect(await screen.text()).toContain('stopping; Ctrl-C again ends at once');
  await reporter.close();
});
