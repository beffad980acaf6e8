import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { HistoryEvent } from '../../src/core/events.ts';
import { step, workflow } from '../../src/workflow/builder/index.ts';
import { testEngine } from '../support/engine.ts';
import { countingStore, eventsOf } from './support.ts';
import { diamond } from './versions.ts';

describe('a fork', () => {
  it('keeps every step that is not downstream and does not change the old run', async () => {
    const runs: string[] = [];
    const model = diamond(runs);
    const { engine, history } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    const before = await history(runId);
    runs.length = 0;
    const forked = await engine.fork({ workflow: model, runId, from: 'b' });
    expect(forked).toMatchObject({ status: 'completed', output: { d: 'd' } });
    expect(forked.runId).not.toBe(runId);
    expect(runs).toEqual(['b', 'd']);
    expect(await history(runId)).toEqual(before);
    const [started] = eventsOf(await history(forked.runId), 'run.started');
    expect(started?.data.forkedFrom).toEqual({ run: runId, step: 'b' });
    await expect(engine.replay({ workflow: model, runId: forked.runId })).resolves.toMatchObject({
      ended: true,
    });
  });

  it('also reruns the failed steps of a failed run', async () => {
    let broken = true;
    const runs: string[] = [];
    const a = step('a', { run: () => void runs.push('a') });
    const bad = step('bad', {
      after: { a },
      run: () => {
        runs.push('bad');
        if (broken) throw new Error('no');
      },
    });
    const c = step('c', { run: () => void runs.push('c') });
    const { model } = workflow('w', { steps: [a, bad, c], onFailure: 'continue' });
    const { engine } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    runs.length = 0;
    broken = false;
    expect(await engine.fork({ workflow: model, runId, from: 'c' })).toMatchObject({ status: 'completed' });
    expect(runs.sort()).toEqual(['bad', 'c']);
  });

  it('keeps only the last attempt of a child workflow that was retried', async () => {
    let tries = 0;
    const runs: string[] = [];
    const input = z.object({ n: z.number() });
    const paid = step('paid', {
      run: () => {
        runs.push('paid');
        return runs.length;
      },
    });
    const flaky = step('flaky', {
      after: { paid },
      run: ({ paid }) => {
        if (++tries === 1) throw new Error('no');
        return paid;
      },
    });
    const child = workflow('child', { input, steps: [paid, flaky] });
    const outer = step('outer', { uses: child, with: () => ({ n: 1 }), retry: { attempts: 2, backoff: 1 } });
    const { model } = workflow('w', { steps: [outer] });
    const { engine } = testEngine();
    const first = await engine.start({ workflow: model });
    expect(first).toMatchObject({ status: 'completed', output: { outer: { flaky: 2 } } });
    const forked = await engine.fork({ workflow: model, runId: first.runId, from: 'outer/flaky' });
    expect(forked).toMatchObject({ status: 'completed', output: { outer: { flaky: 2 } } });
    expect(runs).toHaveLength(2);
  });

  it('is refused for a step that does not exist', async () => {
    const { engine } = testEngine();
    const model = diamond([]);
    const { runId } = await engine.start({ workflow: { ...model, steps: model.steps } });
    await expect(engine.fork({ workflow: model, runId, from: 'e' })).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('a history replay', () => {
  it('runs and writes nothing and returns the recorded result', async () => {
    const runs: string[] = [];
    const model = diamond(runs);
    const { engine, store } = testEngine();
    const first = await engine.start({ workflow: model });
    runs.length = 0;
    const counted = countingStore(store);
    const replayed = await testEngine({ store: counted.store }).engine.replay({
      workflow: model,
      runId: first.runId,
    });
    expect(replayed).toMatchObject({ result: first, ended: true });
    expect(counted.writes).toEqual([]);
    expect(runs).toEqual([]);
  });

  it('refuses an end that does not follow from the steps', async () => {
    const model = diamond([]);
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    const forged = (await store.read(runId)).map(event =>
      event.type === 'run.completed' ? ({ ...event, data: { output: 'forged' } } as HistoryEvent) : event,
    );
    const corrupted = testEngine({ store: { ...store, read: async () => forged } });
    await expect(corrupted.engine.replay({ workflow: model, runId })).rejects.toMatchObject({
      code: 'HISTORY_DIVERGED',
    });
  });

  it('refuses steps that are not in the workflow', async () => {
    const model = diamond([]);
    const { engine } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    const fewer = { ...model, steps: model.steps.filter(({ id }) => id !== 'd') };
    await expect(engine.replay({ workflow: fewer, runId })).rejects.toMatchObject({
      code: 'HISTORY_DIVERGED',
    });
  });
});
