import { describe, expect, it } from 'vitest';
import { testEngine } from '../../test/support/engine.ts';
import type { NewEvent } from '../core/events.ts';
import { systemClock } from '../effects/world.ts';
import {
  approvalRequested,
  cancelled,
  completed,
  failed,
  historyOf,
  noon,
  retrying,
  runCompleted,
  runFailed,
  runStarted,
  skipped,
  started,
  suspended,
} from '../terminal/test-support.ts';
import { approve, step, workflow } from '../workflow/builder/index.ts';
import { type RunView, viewOf } from './run-view.ts';

const statuses = (view: RunView) => Object.fromEntries(view.steps.map(({ path, status }) => [path, status]));

describe('a completed run', () => {
  const view = viewOf(
    historyOf([
      [0, runStarted('order', ['a', 'b', 'c', 'd'])],
      [0, started('a')],
      [0, started('b')],
      [1000, completed('a')],
      [1000, started('c')],
      [3000, completed('b')],
      [4000, completed('c')],
      [4000, skipped('d')],
      [4000, runCompleted],
    ]),
  );

  it('has the status of every step', () => {
    expect(statuses(view)).toEqual({ a: 'completed', b: 'completed', c: 'completed', d: 'skipped' });
    expect(view.counts).toMatchObject({ completed: 3, skipped: 1, pending: 0, running: 0 });
    expect(view.active.size).toBe(0);
  });

  it('measures its duration, its total running time and its peak concurrency', () => {
    expect(view.elapsedMs(noon + 99_000)).toBe(4000);
    expect(view.overlap.workedMs).toBe(7000);
    expect(view.overlap.most).toBe(2);
  });
});

it('shows steps as pending before they start', () => {
  const view = viewOf(historyOf([[0, runStarted('order', ['a', 'b'])]]));
  expect(statuses(view)).toEqual({ a: 'pending', b: 'pending' });
  expect(view.elapsedMs(noon + 500)).toBe(500);
});

it('shows what a step is waiting for, and does not count an approval as running', () => {
  const view = viewOf(
    historyOf([
      [0, runStarted('order', ['a', 'ok', 'sig', 'nap', 'flaky'])],
      [0, started('a')],
      [0, started('ok')],
      [0, approvalRequested('ok', 'Land it?')],
      [0, suspended('ok')],
      [0, completed('a')],
      [0, started('sig')],
      [10, suspended('sig', 'go')],
      [10, started('nap')],
      [20, { type: 'timer.set', step: 'nap', attempt: 1, data: { timer: 0, ms: 5000 } }],
      [20, { type: 'step.suspended', step: 'nap', attempt: 1, data: { on: 'timer', wait: 0 } }],
      [20, started('flaky')],
      [30, retrying('flaky', 2000)],
    ]),
  );
  expect(view.steps.map(({ status, waits, retryAt }) => ({ status, waits, retryAt }))).toEqual([
    { status: 'completed', waits: [], retryAt: undefined },
    {
      status: 'waiting',
      waits: [{ on: 'approval', message: 'Land it?', choices: ['approve', 'reject'] }],
      retryAt: undefined,
    },
    { status: 'waiting', waits: [{ on: 'signal', signal: 'go' }], retryAt: undefined },
    { status: 'waiting', waits: [{ on: 'timer', until: noon + 5020 }], retryAt: undefined },
    { status: 'retrying', waits: [], retryAt: noon + 2030 },
  ]);
  expect(view.overlap.most).toBe(1);
});

describe('a resumed run', () => {
  const resumed = (data: Extract<NewEvent, { type: 'run.resumed' }>['data'] = {}): NewEvent => ({
    type: 'run.resumed',
    data,
  });

  it('resets invalidated steps, keeps the others and continues to count attempts', () => {
    const view = viewOf(
      historyOf([
        [0, runStarted('order', ['a', 'b', 'c'])],
        [0, started('a')],
        [10, completed('a')],
        [10, started('b')],
        [20, failed('b')],
        [20, skipped('c', 'b')],
        [20, runFailed('b')],
        [90_000, resumed({ invalidated: ['b', 'c'] })],
        [90_000, started('b', 2)],
      ]),
    );
    expect(statuses(view)).toEqual({ a: 'completed', b: 'running', c: 'pending' });
    expect(view.step('b')).toMatchObject({ attempt: 2, startedAt: noon + 90_000, error: undefined });
    expect(view.failed.size).toBe(0);
    expect(view.end).toBeUndefined();
    expect(view.elapsedMs(noon + 90_005)).toBe(25);
  });

  it('does not count the time between a crash and the resume', () => {
    const view = viewOf(
      historyOf([
        [0, runStarted('order', ['a', 'b'])],
        [0, started('a')],
        [0, started('b')],
        [100, completed('b')],
        [90_000, resumed()],
        [90_000, { type: 'step.interrupted', step: 'a', attempt: 1, data: {} }],
        [90_000, started('a')],
        [90_050, completed('a')],
        [90_050, runCompleted],
      ]),
    );
    expect(view.step('a')).toMatchObject({ status: 'completed', workedMs: 150, startedAt: noon + 90_000 });
    expect(view.elapsedMs()).toBe(150);
    expect(view.counts).toMatchObject({ completed: 2, running: 0 });
    expect(view.resumes).toBe(1);
  });

  it('reopens a child workflow if only some of its steps are invalidated', () => {
    const view = viewOf(
      historyOf([
        [0, runStarted('order', ['child', 'child/x', 'child/y', 'after'])],
        [0, started('child')],
        [0, started('child/x')],
        [10, completed('child/x')],
        [10, started('child/y')],
        [20, failed('child/y')],
        [20, failed('child')],
        [20, skipped('after', 'child')],
        [20, runFailed('child/y')],
        [50, resumed({ invalidated: ['child', 'child/y', 'after'] })],
        [50, started('child/y', 2)],
      ]),
    );
    expect(statuses(view)).toEqual({
      child: 'running',
      'child/x': 'completed',
      'child/y': 'running',
      after: 'pending',
    });
    expect(view.counts).toMatchObject({ completed: 1, running: 1, pending: 1 });
  });

  it('uses the steps of a changed definition', () => {
    const view = viewOf(
      historyOf([
        [0, runStarted('order', ['a', 'old'])],
        [0, started('a')],
        [10, completed('a')],
        [10, started('old')],
        [20, failed('old')],
        [20, runFailed('old')],
        [50, resumed({ invalidated: ['old'], steps: ['a', 'new'] })],
      ]),
    );
    expect(statuses(view)).toEqual({ a: 'completed', new: 'pending' });
    expect(view.counts).toMatchObject({ completed: 1, failed: 0, pending: 1 });
  });
});

it('restarts the steps of a child workflow when the step that uses it is retried', () => {
  const view = viewOf(
    historyOf([
      [0, runStarted('order', ['child', 'child/x', 'child/y'])],
      [0, started('child')],
      [0, started('child/x')],
      [10, completed('child/x')],
      [10, started('child/y')],
      [20, failed('child/y')],
      [20, retrying('child', 100)],
      [120, started('child', 2)],
    ]),
  );
  expect(statuses(view)).toEqual({ child: 'running', 'child/x': 'pending', 'child/y': 'pending' });
  expect(view.steps.map(({ depth, name }) => [depth, name])).toEqual([
    [0, 'child'],
    [1, 'x'],
    [1, 'y'],
  ]);
});

it('distinguishes steps that a fork reused from those that ran', async () => {
  const a = step('a', { run: () => 1 });
  const b = step('b', { run: () => 2 });
  const c = step('c', { after: { a, b }, run: ({ a, b }) => a + b });
  const { model } = workflow('sum', { steps: [a, b, c] });
  let now = noon;
  const never = (_: number, signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const clock = { ...systemClock, now: () => ++now, waitUntil: never };
  const { engine, history } = testEngine({ clock });
  const { runId } = await engine.start({ workflow: model });
  const forked = await engine.fork({ workflow: model, runId, from: 'c' });
  const view = viewOf(await history(forked.runId));
  expect(view.steps.map(({ path, status, reused }) => [path, status, reused])).toEqual([
    ['a', 'completed', true],
    ['b', 'completed', true],
    ['c', 'completed', false],
  ]);
  expect(view.forkedFrom).toEqual({ run: runId, step: 'c' });
  expect(view.overlap.most).toBe(1);
});

it('agrees with the engine on what a waiting run is waiting for', async () => {
  const ok = approve('ok', { message: 'Ship it?' });
  const sig = step('sig', { run: (_, ctx) => ctx.waitForSignal('go') });
  const { engine, history } = testEngine();
  const result = await engine.start({ workflow: workflow('gate', { steps: [ok, sig] }).model });
  const view = viewOf(await history(result.runId));
  const waits = view.steps.flatMap(({ path, waits }) => waits.map(wait => ({ step: path, ...wait })));
  expect(result).toMatchObject({ status: 'waiting', waiting: waits });
});

it('keeps the reason of a cancellation', () => {
  const view = viewOf(
    historyOf([
      [0, runStarted('order', ['a'])],
      [0, started('a')],
      [10, { type: 'cancel.requested', data: { reason: 'SIGINT' } }],
      [20, cancelled('a', 'SIGINT')],
      [20, { type: 'run.cancelled', data: { reason: 'SIGINT' } }],
    ]),
  );
  expect(view).toMatchObject({ cancelling: 'SIGINT', end: { type: 'run.cancelled' } });
  expect(view.step('a')?.reason).toBe('SIGINT');
});

it('adds a step that is missing from the list of steps', () => {
  const view = viewOf(
    historyOf([
      [0, runStarted('order', ['a'])],
      [0, started('b')],
    ]),
  );
  expect(statuses(view)).toEqual({ a: 'pending', b: 'running' });
});
