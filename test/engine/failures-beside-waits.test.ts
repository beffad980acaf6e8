import { describe, expect, it } from 'vitest';
import { approve, type StepHandle, step, workflow } from '../../src/workflow/builder/index.ts';
import type { FailurePolicy } from '../../src/workflow/model.ts';
import { deferred } from '../support/engine.ts';
import { endsOf, eventWatch, timedEngine } from './support.ts';

const waits = {
  signal: () => step('waits', { run: (_, ctx) => ctx.waitForSignal('payment') }),
  'two signals': () =>
    step('waits', { run: (_, ctx) => Promise.all([ctx.waitForSignal('a'), ctx.waitForSignal('b')]) }),
  approval: () => approve('waits', { message: 'now?' }),
  timer: () => step('waits', { run: (_, ctx) => ctx.sleep('30d') }),
  retry: () =>
    step('waits', {
      retry: { attempts: 2, backoff: { initial: '30d', max: '30d' } },
      run: (): string => {
        throw new Error('later');
      },
    }),
} satisfies Record<string, () => StepHandle>;

const fails = (after: Promise<unknown>) =>
  step('fails', {
    run: async () => {
      await after;
      throw new Error('broken');
    },
  });

const places = {
  'beside it': (wait: StepHandle, fails: StepHandle) => [wait, fails],
  'inside a child workflow beside it': (wait: StepHandle, fails: StepHandle) => [
    step('child', { uses: workflow('c', { steps: [wait] }) }),
    fails,
  ],
  'beside a child workflow that contains it': (wait: StepHandle, fails: StepHandle) => [
    wait,
    step('child', { uses: workflow('c', { steps: [fails] }) }),
  ],
};

const policies: readonly FailurePolicy[] = ['fail-fast', 'finish-running'];
const variants = policies.flatMap(onFailure =>
  Object.keys(places).flatMap(place => Object.keys(waits).map(on => [onFailure, place, on] as const)),
) as [FailurePolicy, keyof typeof places, keyof typeof waits][];

describe('a failure while another step waits', () => {
  // With `finish-running`, a step that sleeps may finish, and so may a child workflow with a step that is retried.
  const ending = variants.filter(
    ([onFailure, place, on]) =>
      onFailure === 'fail-fast' ||
      (on !== 'timer' && (on !== 'retry' || place !== 'inside a child workflow beside it')),
  );

  it.each(ending)('fails the run at once: %s, %s, %s', async (onFailure, place, on) => {
    const isWaiting = deferred();
    const watch = eventWatch();
    const { engine, history } = timedEngine({ observe: watch.observe });
    const { model } = workflow('w', {
      onFailure,
      steps: places[place](waits[on](), fails(isWaiting.promise)),
    });
    const running = engine.start({ workflow: model });
    await watch.seenEvent(
      ({ type }) => type === 'step.suspended' || type === 'timer.set' || type === 'step.retrying',
    );
    isWaiting.resolve();
    const result = await running;
    expect(result).toMatchObject({ status: 'failed', error: { message: 'broken' } });
    expect(Object.values(endsOf(await history(result.runId)))).toContain('cancelled');
  });

  it.each(policies)('fails the run at once if both are copies of one step: %s', async onFailure => {
    const isWaiting = deferred();
    const watch = eventWatch();
    const { engine } = timedEngine({ observe: watch.observe });
    const copies = step('copies', {
      concurrency: 2,
      onFailure,
      run: async (_, ctx) => {
        if (ctx.worker === 0) return ctx.waitForSignal('payment');
        await isWaiting.promise;
        throw new Error('broken');
      },
    });
    const running = engine.start({ workflow: workflow('w', { steps: [copies] }) });
    await watch.seenType('step.suspended');
    isWaiting.resolve();
    expect(await running).toMatchObject({ status: 'failed', error: { message: 'broken' } });
  });

  it('fails the run as soon as the steps that may finish only wait', async () => {
    const watch = eventWatch();
    const { engine, history } = timedEngine({ observe: watch.observe });
    const hasFailed = deferred();
    const ask = step('ask', {
      run: async (_, ctx) => {
        await hasFailed.promise;
        return ctx.waitForSignal('payment');
      },
    });
    const before = step('before', { run: () => hasFailed.promise });
    const gate = approve('gate', { after: { before }, message: 'now?' });
    const last = step('last', { after: { gate }, run: () => 'never' });
    const child = step('child', { uses: workflow('c', { steps: [before, gate, last] }) });
    const running = engine.start({
      workflow: workflow('w', {
        onFailure: 'finish-running',
        steps: [ask, child, fails(Promise.resolve())],
      }),
    });
    await watch.seenType('step.failed');
    hasFailed.resolve();
    const result = await running;
    expect(result).toMatchObject({ status: 'failed', step: 'fails' });
    expect(endsOf(await history(result.runId))).toEqual({
      ask: 'cancelled',
      child: 'cancelled',
      'child/before': 'completed',
      'child/gate': 'cancelled',
      'child/last': 'skipped',
      fails: 'failed',
    });
  });

  it('fails the run at once if the failure is a timeout of a step that waits', async () => {
    const watch = eventWatch();
    const { engine, clock } = timedEngine({ observe: watch.observe });
    const slow = step('slow', { timeout: { step: '1h' }, run: (_, ctx) => ctx.sleep('2h') });
    const running = engine.start({ workflow: workflow('w', { steps: [waits.signal(), slow] }) });
    await watch.seenType('timer.set');
    await clock.advance(3_600_000);
    expect(await running).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT' } });
  });
});
