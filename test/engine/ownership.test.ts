import { describe, expect, it } from 'vitest';
import { memoryStore } from '../../src/store/memory.ts';
import type { EventStore } from '../../src/store/port.ts';
import { approve, step, workflow } from '../../src/workflow/builder/index.ts';
import { deferred, testEngine } from '../support/engine.ts';
import { at, countingStore, eventsOf, eventWatch, timedEngine } from './support.ts';

describe('run ownership', () => {
  it('lets one of two engines resume a run and refuses the other before it does anything', async () => {
    const runs: string[] = [];
    const gate = approve('gate', { message: 'ok?' });
    const work = step('work', { after: { gate }, run: () => void runs.push('work') });
    const { model } = workflow('w', { steps: [gate, work] });
    const store = memoryStore();
    const { runId } = await testEngine({ store }).engine.start({ workflow: model });
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'approve' }, at);
    const counted = [countingStore(store), countingStore(store)];
    const outcomes = await Promise.allSettled(
      counted.map(({ store }) => testEngine({ store }).engine.resume({ workflow: model, runId })),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const loser = outcomes.findIndex(({ status }) => status === 'rejected');
    expect(outcomes[loser]).toMatchObject({ reason: { code: 'RUN_OWNED' } });
    expect(counted[loser]?.writes).toEqual([]);
    expect(runs).toEqual(['work']);
  });

  it('refuses to resume a run that is still running', async () => {
    const hold = deferred();
    const work = step('work', { run: () => hold.promise });
    const { model } = workflow('w', { steps: [work] });
    const watch = eventWatch();
    const { engine, store, events } = testEngine({ observe: watch.observe });
    const running = engine.start({ workflow: model });
    await watch.seenType('step.started');
    await expect(
      testEngine({ store }).engine.resume({ workflow: model, runId: events[0]?.runId ?? '' }),
    ).rejects.toMatchObject({ code: 'RUN_OWNED' });
    hold.resolve();
    expect(await running).toMatchObject({ status: 'completed' });
  });

  it('changes only when the owner is dead, and the old owner is fenced before it writes again', async () => {
    const runs: string[] = [];
    const hold = deferred();
    const work = step('work', {
      run: () => {
        runs.push('work');
        return runs.length === 1 ? hold.promise : undefined;
      },
    });
    const after = step('next', { after: { work }, run: () => void runs.push('next') });
    const { model } = workflow('w', { steps: [work, after] });
    const store = memoryStore();
    const watch = eventWatch();
    const old = timedEngine({ store, observe: watch.observe, settings: { leaseMs: 15_000 } });
    const stalled = old.engine.start({ workflow: model });
    const { runId } = await watch.seenType('step.started', 'work');

    let isOldAlive = true;
    const next = timedEngine({ store, isAlive: () => isOldAlive });
    await next.clock.advance(24 * 3_600_000);
    await expect(next.engine.resume({ workflow: model, runId })).rejects.toMatchObject({
      code: 'RUN_OWNED',
    });
    isOldAlive = false;
    const taken = await next.clock.until(next.engine.resume({ workflow: model, runId }));
    expect(taken).toMatchObject({ status: 'completed' });

    hold.resolve();
    await expect(stalled).rejects.toMatchObject({ code: 'FENCED' });
    expect(runs).toEqual(['work', 'work', 'next']);
    const history = await store.read(runId);
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, index) => index + 1));
    expect(eventsOf(history, 'step.completed', 'work')).toHaveLength(1);
    expect(eventsOf(history, 'step.interrupted', 'work')).toHaveLength(1);
  });

  it('stops an owner that cannot renew its lease because another process owns the run', async () => {
    const work = step('work', {
      run: (_, ctx) =>
        new Promise<void>((_, reject) =>
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
        ),
    });
    const { model } = workflow('w', { steps: [work] });
    const store = memoryStore();
    const watch = eventWatch();
    const old = timedEngine({ store, observe: watch.observe, settings: { leaseMs: 15_000 } });
    const running = old.engine.start({ workflow: model });
    const { runId } = await watch.seenType('step.started');
    const thief = { incarnation: 'thief', host: 'elsewhere', pid: 1, processStart: 'x' };
    await store.acquire({
      runId,
      owner: thief,
      provablyDead: (await store.list())[0]?.owner?.incarnation,
      now: '2030-01-01T00:00:00.000Z',
      expiresAt: '2031-01-01T00:00:00.000Z',
    });
    const [outcome] = await Promise.allSettled([old.clock.until(running)]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'FENCED' } });
    expect((await store.list())[0]?.owner?.incarnation).toBe('thief');
  });

  it('is kept during a long run by renewing the lease', async () => {
    const work = step('work', {
      run: async (_, ctx) => {
        await ctx.sleep('10m');
      },
    });
    const { model } = workflow('w', { steps: [work] });
    const watch = eventWatch();
    const { engine, store, clock } = timedEngine({ observe: watch.observe, settings: { leaseMs: 15_000 } });
    const running = engine.start({ workflow: model });
    await watch.seenType('timer.set');
    await clock.advance(5 * 60_000);
    const [summary] = await store.list();
    expect(Date.parse(summary?.owner?.expiresAt ?? '')).toBeGreaterThan(clock.now());
    expect(await clock.until(running)).toMatchObject({ status: 'completed' });
    expect((await store.list())[0]?.owner).toBeNull();
  });

  it('is released when the store fails, and the first error is reported', async () => {
    const inner = memoryStore();
    const broken: EventStore = { ...inner, append: () => Promise.reject(new Error('disk full')) };
    const work = step('work', { run: () => 1 });
    const { model } = workflow('w', { steps: [work] });
    await expect(testEngine({ store: broken }).engine.start({ workflow: model })).rejects.toThrow(
      'disk full',
    );
    const [summary] = await inner.list();
    expect(summary?.owner).toBeNull();
    const result = await testEngine({ store: inner }).engine.resume({
      workflow: model,
      runId: summary?.runId ?? '',
    });
    expect(result).toMatchObject({ status: 'completed', output: { work: 1 } });
  });

  it('cannot be acquired for a run that does not exist', async () => {
    const { engine } = testEngine();
    await expect(
      engine.resume({
        workflow: workflow('w', { steps: [step('a', { run: () => 1 })] }).model,
        runId: 'nowhere',
      }),
    ).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  });
});
