import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { approve, maybe, step, workflow } from '../../src/workflow/builder/index.ts';
import { barrier, deferred, summary, testEngine } from '../support/engine.ts';
import { at, endsOf, eventsOf, timedEngine } from './support.ts';

const input = z.object({ n: z.number() });

describe('a child workflow', () => {
  it('has a separate output for each of the steps that use it', async () => {
    const double = step('double', { input, run: (_, ctx) => ctx.input.n * 2 });
    const child = workflow('child', { input, steps: [double], output: { double } });
    const steps = Array.from({ length: 12 }, (_, n) => step(`use${n}`, { uses: child, with: () => ({ n }) }));
    const { engine } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps }).model });
    const expected = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`use${n}`, { double: n * 2 }]));
    expect(result).toMatchObject({ status: 'completed', output: expected });
  });

  it('has separate outputs for the steps that use it after a resume', async () => {
    const runs: number[] = [];
    const note = step('note', {
      input,
      run: (_, ctx) => {
        runs.push(ctx.input.n);
        return ctx.input.n;
      },
    });
    const ok = approve('ok', { after: { note }, input, message: ({ note }) => `take ${note}?` });
    const result = step('result', { after: { note, ok }, run: ({ note, ok }) => `${note} ${ok.choice}` });
    const child = workflow('child', { input, steps: [note, ok, result], output: { result } });
    const steps = Array.from({ length: 3 }, (_, n) => step(`use${n}`, { uses: child, with: () => ({ n }) }));
    const { model } = workflow('w', { steps });
    const { engine, store } = testEngine();
    const first = await engine.start({ workflow: model });
    expect(first).toMatchObject({
      status: 'waiting',
      waiting: [0, 1, 2].map(n => ({ step: `use${n}/ok`, on: 'approval', message: `take ${n}?` })),
    });
    for (const n of [2, 0]) {
      await store.post(first.runId, { kind: 'approval', step: `use${n}/ok`, choice: 'approve' }, at);
    }
    const second = await engine.resume({ workflow: model, runId: first.runId });
    expect(second).toMatchObject({ status: 'waiting', waiting: [{ step: 'use1/ok' }] });
    await store.post(first.runId, { kind: 'approval', step: 'use1/ok', choice: 'approve' }, at);
    expect(await engine.resume({ workflow: model, runId: first.runId })).toMatchObject({
      status: 'completed',
      output: { use0: { result: '0 approve' }, use1: { result: '1 approve' }, use2: { result: '2 approve' } },
    });
    expect(runs.sort()).toEqual([0, 1, 2]);
  });

  it('fails its step with the first cause, and the run names the inner step', async () => {
    const bad = step('bad', {
      run: (): string => {
        throw new Error('deep');
      },
    });
    const skipped = step('skipped', { after: { bad }, run: () => 'never' });
    const inner = step('inner', { uses: workflow('grandchild', { steps: [bad, skipped] }) });
    const outer = step('outer', { uses: workflow('child', { steps: [inner] }) });
    const after = step('after', { after: { outer }, run: () => 'never' });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [outer, after] }).model });
    expect(result).toMatchObject({ status: 'failed', step: 'outer/inner/bad', error: { message: 'deep' } });
    expect(endsOf(events)).toEqual({
      'outer/inner/bad': 'failed',
      'outer/inner/skipped': 'skipped',
      'outer/inner': 'failed',
      outer: 'failed',
      after: 'skipped',
    });
  });

  it('does not fail the run if its step is optional', async () => {
    const bad = step('bad', {
      run: (): string => {
        throw new Error('deep');
      },
    });
    const outer = step('outer', { optional: true, uses: workflow('child', { steps: [bad] }) });
    const after = step('after', { after: { outer: maybe(outer) }, run: ({ outer }) => outer ?? 'continued' });
    const { engine } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [outer, after] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { after: 'continued' } });
  });

  it('is cancelled as a whole when a sibling of its step fails', async () => {
    const failNow = deferred();
    const waiting = step('waiting', {
      run: (_, ctx) =>
        new Promise<string>((_, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason));
          failNow.resolve();
        }),
    });
    const next = step('next', { after: { waiting }, run: () => 'never' });
    const outer = step('outer', { uses: workflow('child', { steps: [waiting, next] }) });
    const bad = step('bad', {
      run: async (): Promise<string> => {
        await failNow.promise;
        throw new Error('bad');
      },
    });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [outer, bad] }).model });
    expect(result).toMatchObject({ status: 'failed', step: 'bad' });
    expect(endsOf(events)).toEqual({
      bad: 'failed',
      'outer/waiting': 'cancelled',
      'outer/next': 'skipped',
      outer: 'cancelled',
    });
    expect(eventsOf(events, 'step.cancelled', 'outer')[0]?.data.reason).toBe('bad failed');
    expect(eventsOf(events, 'step.skipped', 'outer/next')[0]?.data).toMatchObject({
      reason: 'failure',
      because: 'bad',
    });
  });

  it('skips steps that were not reached because of the outer failure, not because of a cancellation', async () => {
    const failNow = deferred();
    const waiting = step('waiting', {
      run: (_, ctx) =>
        new Promise<string>((_, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason));
          failNow.resolve();
        }),
    });
    const queued = step('queued', { run: () => 'never' });
    const outer = step('outer', { uses: workflow('child', { steps: [waiting, queued] }) });
    const bad = step('bad', {
      run: async (): Promise<string> => {
        await failNow.promise;
        throw new Error('bad');
      },
    });
    const { engine, events } = testEngine();
    await engine.start({ workflow: workflow('w', { steps: [bad, outer] }).model, maxConcurrentWorkers: 2 });
    expect(eventsOf(events, 'step.skipped', 'outer/queued')[0]?.data).toMatchObject({
      reason: 'failure',
      because: 'bad',
    });
  });

  it('counts as failed, not cancelled, if a sibling fails at the same moment', async () => {
    const together = barrier(2);
    const bad = step('bad', {
      run: async (): Promise<string> => {
        await together();
        throw new Error('bad');
      },
    });
    const child = workflow('child', { steps: [bad] });
    const steps = [step('one', { uses: child }), step('two', { uses: child })];
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps }).model });
    expect(endsOf(events)).toEqual({
      'one/bad': 'failed',
      one: 'failed',
      'two/bad': 'failed',
      two: 'failed',
    });
    expect(result).toMatchObject({ status: 'failed', step: 'one/bad' });
  });

  it('follows its own failure policy', async () => {
    const bad = step('bad', {
      run: (): string => {
        throw new Error('bad');
      },
    });
    const other = step('other', {
      run: async () => {
        await new Promise(resolve => setImmediate(resolve));
        return 'done';
      },
    });
    const third = step('third', { after: { other }, run: () => 'done' });
    const outer = step('outer', {
      uses: workflow('child', { steps: [bad, other, third], onFailure: 'continue' }),
    });
    const { engine, events } = testEngine();
    await engine.start({ workflow: workflow('w', { steps: [outer] }).model });
    expect(endsOf(events)).toEqual({
      'outer/bad': 'failed',
      'outer/other': 'completed',
      'outer/third': 'completed',
      outer: 'failed',
    });
  });

  it('is retried as a whole, with all inner steps', async () => {
    let tries = 0;
    const runs: string[] = [];
    const first = step('first', { run: () => void runs.push('first') });
    const flaky = step('flaky', {
      after: { first },
      run: () => {
        runs.push('flaky');
        if (++tries < 3) throw new Error('no');
        return tries;
      },
    });
    const outer = step('outer', {
      uses: workflow('child', { steps: [first, flaky] }),
      retry: { attempts: 3, backoff: '1s' },
    });
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [outer] }).model }));
    expect(result).toMatchObject({ status: 'completed', output: { outer: { flaky: 3 } } });
    expect(runs).toEqual(['first', 'flaky', 'first', 'flaky', 'first', 'flaky']);
    expect(eventsOf(events, 'step.started', 'outer/flaky').map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });

  it('fails its step if the input is invalid', async () => {
    const child = workflow('child', { input, steps: [step('a', { run: () => 1 })] });
    const outer = step('outer', { uses: child, with: () => ({ n: 'text' as unknown as number }) });
    const throwing = step('throwing', {
      uses: child,
      with: (): { n: number } => {
        throw new Error('no input');
      },
    });
    const { engine, events } = testEngine();
    await engine.start({
      workflow: workflow('w', { steps: [outer, throwing], onFailure: 'continue' }).model,
    });
    expect(eventsOf(events, 'step.failed').map(({ step, data }) => [step, data.error.code])).toEqual([
      ['outer', 'INPUT_INVALID'],
      ['throwing', 'EXPRESSION_FAILED'],
    ]);
  });

  it('is not completed while an inner step waits', async () => {
    const outer = step('outer', { uses: workflow('child', { steps: [approve('ok', { message: 'ok?' })] }) });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [outer] }).model });
    expect(result).toMatchObject({ status: 'waiting', waiting: [{ step: 'outer/ok' }] });
    expect(endsOf(events)).toEqual({});
  });
});

describe('the resume of a run that failed inside a child workflow', () => {
  it('keeps finished inner steps', async () => {
    let broken = true;
    const runs: string[] = [];
    const paid = step('paid', {
      run: () => {
        runs.push('paid');
        return 'receipt';
      },
    });
    const bad = step('bad', {
      after: { paid },
      run: ({ paid }) => {
        runs.push('bad');
        if (broken) throw new Error('no');
        return paid;
      },
    });
    const outer = step('outer', { uses: workflow('child', { steps: [paid, bad] }) });
    const { model } = workflow('w', { steps: [outer] });
    const { engine } = testEngine();
    const first = await engine.start({ workflow: model });
    expect(first.status).toBe('failed');
    broken = false;
    expect(await engine.resume({ workflow: model, runId: first.runId })).toMatchObject({
      status: 'completed',
      output: { outer: { bad: 'receipt' } },
    });
    expect(runs).toEqual(['paid', 'bad', 'bad']);
  });

  it('keeps the finished steps of the last of several attempts', async () => {
    let broken = true;
    const runs: string[] = [];
    const paid = step('paid', {
      run: () => {
        runs.push('paid');
        return runs.length;
      },
    });
    const bad = step('bad', {
      after: { paid },
      run: ({ paid }) => {
        if (broken) throw new Error('no');
        return paid;
      },
    });
    const outer = step('outer', {
      uses: workflow('child', { steps: [paid, bad] }),
      retry: { attempts: 2, backoff: '8s' },
    });
    const { model } = workflow('w', { steps: [outer] });
    const { engine, events, clock, history } = timedEngine();
    const first = await clock.until(engine.start({ workflow: model }));
    expect(first.status).toBe('failed');
    const again = await clock.until(engine.resume({ workflow: model, runId: first.runId }));
    expect(again.status).toBe('failed');
    broken = false;
    const result = await clock.until(engine.resume({ workflow: model, runId: first.runId }));
    expect(result).toMatchObject({ status: 'completed' });
    // The resumed attempt of the child keeps the finished step; its retry reruns the whole child, like every retry.
    expect(runs).toHaveLength(3);
    expect(eventsOf(events, 'step.retrying', 'outer').map(({ data }) => data.delayMs)).toEqual([8000, 8000]);
    await expect(engine.replay({ workflow: model, runId: first.runId })).resolves.toMatchObject({
      ended: true,
      result,
    });
    expect(summary(await history(first.runId)).at(-1)).toBe('run.completed');
  });
});
