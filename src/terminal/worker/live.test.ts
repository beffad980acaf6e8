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
    reporter.report(worker, { kind: 'enlisted', name: `worker-${worker + 1}` });
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

it('redraws workers in place below the log lines', async () => {
  const { screen, reporter, clock, events, text, tick } = await watch();
  events(0, ...takes('fix-readme'));
  reporter.observe(0, {
    kind: 'agent',
    step: 'work',
    event: { type: 'text', text: 'Edit README.md\u001B[2J' },
  });
  reporter.report(1, { kind: 'sleeps', why: 'no task is ready: 1 held' });
  for (let frame = 0; frame < 50; frame++) {
    clock.now += 100;
    tick();
  }
  expect(await text()).toMatchInlineSnapshot(`
    "<time> worker-2  sleeping: no task is ready: 1 held
    2 workers on main · 1 working, 1 sleeping
     ⠋  worker-1  fix-readme  coder  5.0s  Edit README.md
     ◔  worker-2                     5.0s  sleeping: no task is ready: 1 held"
  `);
  events(0, ...lands('Fix the readme'));
  tick();
  expect(await text()).toMatchInlineSnapshot(`
    "<time> worker-2  sleeping: no task is ready: 1 held
    <time> worker-1  landed 3f2c1ab0d2 Fix the readme on main
    2 workers on main · 1 looking for a task, 1 sleeping · 1 landed
     ⠙  worker-1  5.0s  looking for a task
     ◔  worker-2  5.0s  sleeping: no task is ready: 1 held"
  `);
  expect(await screen.scrolledAway()).toEqual([]);
  await reporter.close();
});

it('leaves the log lines when it is closed, and restores the cursor', async () => {
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
  reporter.report(1, {
    kind: 'abandoned',
    task: 'b',
    state: 'failed',
    reason: 'it conflicts',
    branch: 'reprise/parked/b',
    hint: 'look at it',
  });
  reporter.report(0, { kind: 'ended', reason: 'stopped' });
  await reporter.close();
  expect(await text()).toMatchInlineSnapshot(`
    "$ reprise worker
    <time> worker-1  landed 3f2c1ab0d2 Do a on main
    <time> worker-2  parked on reprise/parked/b: it conflicts
    <time> worker-2  gave up on b: it conflicts; its work is on reprise/parked/b
    <time> worker-2  hint: look at it
    <time> worker-1  stopped by request"
  `);
  const written = screen.written.join('');
  expect(written.lastIndexOf('\u001B[?25h')).toBeGreaterThan(written.lastIndexOf('\u001B[?25l'));
  expect(screen.listeners()).toBe(0);
});

it('does not repeat a line that has not changed', async () => {
  const { reporter, text } = await watch({ workers: 1, rows: 20 });
  const problems = [{ message: 'issues/huge.md is too large for a task' }];
  for (let round = 0; round < 3; round++) {
    reporter.report(0, { kind: 'problems', problems });
    reporter.observe(0, { kind: 'notice', message: 'waiting for another worker to pick a task' });
    reporter.report(0, { kind: 'woke', what: 'claims' });
    reporter.report(0, { kind: 'sleeps', why: 'no task is ready: 1 held' });
  }
  reporter.report(0, { kind: 'sleeps', why: 'there are no tasks' });
  await reporter.close();
  expect(await text()).toMatchInlineSnapshot(`
    "<time> worker-1  issues/huge.md is too large for a task
    <time> worker-1  note: waiting for another worker to pick a task
    <time> worker-1  sleeping: no task is ready: 1 held
    <time> worker-1  sleeping: there are no tasks"
  `);
});

it('adapts to the size of the terminal', async () => {
  const { screen, reporter, events, tick } = await watch({ workers: 9, columns: 100, rows: 20 });
  events(7, ...takes('a-task-with-a-rather-long-name-that-has-to-be-cut'));
  reporter.observe(7, { kind: 'agent', step: 'work', event: { type: 'text', text: 'x'.repeat(300) } });
  tick();
  screen.resize(40, 6);
  expect(await screen.text()).toMatchInlineSnapshot(`
    "9 workers on main · 1 working, 8 looki…
     ⠙  worker-1                 0ms
     ⠙  worker-2                 0ms
     ⠙  worker-8  a-tas…  coder  0ms
     … 6 more: 6 looking for a task"
  `);
  await reporter.close();
  expect(await screen.text()).toBe('');
});

it('shows that the workers have been asked to stop', async () => {
  const { screen, reporter, clock, tick } = await watch({ workers: 1 });
  clock.isStopping = true;
  tick();
  expect(await screen.text()).toContain('stopping; press Ctrl-C again to stop now');
  await reporter.close();
});
