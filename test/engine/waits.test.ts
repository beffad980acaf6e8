import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { toTimestamp } from '../../src/core/time.ts';
import { approve, step, workflow } from '../../src/workflow/builder/index.ts';
import type { StepContext } from '../../src/workflow/model.ts';
import { summary, testEngine } from '../support/engine.ts';
import { at, endsOf, eventsOf, eventWatch, timedEngine } from './support.ts';

const waiting = (run: (ctx: StepContext) => unknown) =>
  workflow('w', { steps: [step('waits', { run: (_, ctx) => run(ctx) })] }).model;

describe('a wait for a signal', () => {
  it('continues after a resume by running the code before it again', async () => {
    let runs = 0;
    const model = waiting(async ctx => {
      runs++;
      const first = await ctx.waitForSignal<string>('go');
      const second = await ctx.waitForSignal<string>('go');
      return [first, second];
    });
    const { engine, store } = testEngine();
    const started = await engine.start({ workflow: model });
    expect(started).toMatchObject({
      status: 'waiting',
      waiting: [{ step: 'waits', on: 'signal', signal: 'go' }],
    });
    await store.post(started.runId, { kind: 'signal', name: 'go', payload: 'one' }, at);
    const resumed = await engine.resume({ workflow: model, runId: started.runId });
    expect(resumed.status).toBe('waiting');
    await store.post(started.runId, { kind: 'signal', name: 'go', payload: 'two' }, at);
    const result = await engine.resume({ workflow: model, runId: started.runId });
    expect(result).toMatchObject({ status: 'completed', output: { waits: ['one', 'two'] } });
    expect(runs).toBe(3);
  });

  it('receives signals that arrived before it, in order, one per wait', async () => {
    const model = waiting(async ctx => [await ctx.waitForSignal('go'), await ctx.waitForSignal('go')]);
    const gate = approve('gate', { message: 'now?' });
    const after = step('after', { after: { gate }, run: (_, ctx) => ctx.waitForSignal('go') });
    const whole = { ...model, steps: [...workflow('g', { steps: [gate, after] }).model.steps] };
    const { engine, store, history } = testEngine();
    const { runId } = await engine.start({ workflow: whole });
    await store.post(runId, { kind: 'signal', name: 'go', payload: 1 }, at);
    await store.post(runId, { kind: 'signal', name: 'go', payload: 2 }, at);
    await engine.resume({ workflow: whole, runId });
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'approve' }, at);
    expect(await engine.resume({ workflow: whole, runId })).toMatchObject({
      status: 'completed',
      output: { after: 1 },
    });
    expect(eventsOf(await history(runId), 'signal.received')).toHaveLength(2);
  });

  it('can be for several signals, which may arrive in any order and across resumes', async () => {
    const model = waiting(ctx => Promise.all([ctx.waitForSignal('one'), ctx.waitForSignal('two')]));
    const both = testEngine();
    const { runId } = await both.engine.start({ workflow: model });
    await both.store.post(runId, { kind: 'signal', name: 'two', payload: 2 }, at);
    await both.store.post(runId, { kind: 'signal', name: 'one', payload: 1 }, at);
    expect(await both.engine.resume({ workflow: model, runId })).toMatchObject({ output: { waits: [1, 2] } });

    const watch = eventWatch();
    const apart = testEngine({ observe: watch.observe });
    const started = await apart.engine.start({ workflow: model });
    await apart.store.post(started.runId, { kind: 'signal', name: 'two', payload: 2 }, at);
    const running = apart.engine.resume({ workflow: model, runId: started.runId });
    await watch.seenType('step.resumed');
    await apart.store.post(started.runId, { kind: 'signal', name: 'one', payload: 1 }, at);
    expect(await running).toMatchObject({ output: { waits: [1, 2] } });
  });

  const schema = z.object({ n: z.number() });

  it('refuses a payload that does not match its schema, says why, and keeps waiting', async () => {
    const model = waiting(ctx => ctx.waitForSignal('go', { schema }));
    const logged: string[] = [];
    const { engine, store } = testEngine({
      observe: observation => {
        if (observation.kind === 'log') logged.push(observation.message);
      },
    });
    const { runId } = await engine.start({ workflow: model });
    await store.post(runId, { kind: 'signal', name: 'go', payload: { n: 'x' } }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      status: 'waiting',
      waiting: [{ step: 'waits', on: 'signal', signal: 'go' }],
    });
    expect(logged).toEqual([
      expect.stringMatching(/^refused signal "go" and keeps waiting for it: .*number/s),
    ]);
    await store.post(runId, { kind: 'signal', name: 'go', payload: { n: 1 } }, at);
    const result = await engine.resume({ workflow: model, runId });
    expect(result).toMatchObject({ status: 'completed', output: { waits: { n: 1 } } });
    expect(await engine.replay({ workflow: model, runId })).toMatchObject({ result });
  });

  it('accepts the next matching payload in the same process, without changing the numbers of other waits', async () => {
    const model = waiting(async ctx => [
      await Promise.all([ctx.waitForSignal('go', { schema }), ctx.waitForSignal('other')]),
      await ctx.waitForSignal('last'),
    ]);
    const { engine, store, history } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    for (const payload of ['bad', 'worse', { n: 2 }])
      await store.post(runId, { kind: 'signal', name: 'go', payload }, at);
    await store.post(runId, { kind: 'signal', name: 'other', payload: 'o' }, at);
    expect((await engine.resume({ workflow: model, runId })).status).toBe('waiting');
    await store.post(runId, { kind: 'signal', name: 'last', payload: 'l' }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      output: { waits: [[{ n: 2 }, 'o'], 'l'] },
    });
    const waits = eventsOf(await history(runId), 'step.suspended').map(({ data }) => data.wait);
    expect(waits).toEqual([0, 1, 0, 0, 2]);
  });

  it('receives the first signal if its step was the first to wait', async () => {
    const take = (id: string) => step(id, { run: (_, ctx) => ctx.waitForSignal('go') });
    const { model } = workflow('w', { steps: [take('a'), take('b')] });
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    await store.post(runId, { kind: 'signal', name: 'go', payload: 'first' }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      status: 'waiting',
      waiting: [{ step: 'b' }],
    });
    await store.post(runId, { kind: 'signal', name: 'go', payload: 'second' }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      output: { a: 'first', b: 'second' },
    });
  });

  it('keeps the engine running until the signal arrives, if asked to', async () => {
    const model = waiting(ctx => ctx.waitForSignal('go'));
    const watch = eventWatch();
    const { engine, store, events } = testEngine({ observe: watch.observe });
    const running = engine.start({ workflow: model, wait: true });
    await watch.seenType('step.suspended');
    await store.post(events[0]?.runId ?? '', { kind: 'signal', name: 'go', payload: 'here' }, at);
    expect(await running).toMatchObject({ status: 'completed', output: { waits: 'here' } });
  });

  it('fails with WAIT_CHANGED if a resumed function makes its calls in a different order', async () => {
    const { engine, store } = testEngine();
    const before = waiting(async ctx => [await ctx.waitForSignal('one'), await ctx.waitForSignal('two')]);
    const changed = (run: (ctx: StepContext) => unknown) => {
      const { model } = workflow('w', { steps: [step('waits', { run: (_, ctx) => run(ctx) })] });
      return {
        ...model,
        steps: model.steps.map(step => ({ ...step, fingerprint: before.steps[0]?.fingerprint ?? '' })),
      };
    };
    const { runId } = await engine.start({ workflow: before });
    await store.post(runId, { kind: 'signal', name: 'one', payload: 1 }, at);
    const other = changed(async ctx => [await ctx.sleep(5), await ctx.waitForSignal('one')]);
    const result = await engine.resume({ workflow: other, runId });
    expect(result).toMatchObject({
      status: 'failed',
      error: {
        code: 'WAIT_CHANGED',
        message: 'call 1 of ctx is now sleep(), but was waitForSignal("one") when it was recorded',
      },
    });
  });
});

describe('a durable sleep', () => {
  it('elapses while no process runs and does not restart on resume', async () => {
    const slept: number[] = [];
    const model = waiting(async ctx => {
      await ctx.sleep('1h');
      slept.push(1);
      await ctx.sleep('1h');
      return 'done';
    });
    const { engine, clock, history, environment } = timedEngine();
    const interrupt = new AbortController();
    const running = engine.start({ workflow: model, interrupt: interrupt.signal });
    await clock.advance(90 * 60_000);
    expect(slept).toEqual([1]);
    // The owner dies.
    const [summaryBefore] = await environment.store.list();
    const runId = summaryBefore?.runId ?? '';
    const other = timedEngine({ store: environment.store, isAlive: () => false });
    await other.clock.advance(clock.now() - other.clock.now() + 25 * 60_000);
    const resumed = other.clock.until(other.engine.resume({ workflow: model, runId }));
    expect(await resumed).toMatchObject({ status: 'completed', output: { waits: 'done' } });
    const [set] = eventsOf(await history(runId), 'timer.set').slice(1);
    const fired = eventsOf(await history(runId), 'timer.fired')[1];
    expect(Date.parse(fired?.at ?? '') - Date.parse(set?.at ?? '')).toBe(3_600_000);
    await expect(clock.until(running)).rejects.toMatchObject({ code: 'FENCED' });
    expect(interrupt.signal.aborted).toBe(false);
  });

  it('can race a signal, and the first to finish wins', async () => {
    const run = (ctx: StepContext) =>
      Promise.race([ctx.sleep('1h').then(() => 'slept'), ctx.waitForSignal<string>('go')]);
    const slept = timedEngine();
    expect(await slept.clock.until(slept.engine.start({ workflow: waiting(run) }))).toMatchObject({
      output: { waits: 'slept' },
    });

    const signalled = timedEngine({ settings: { inboxMs: 1000 } });
    const running = signalled.engine.start({ workflow: waiting(run) });
    await signalled.clock.advance(5000);
    await signalled.store.post(
      signalled.events[0]?.runId ?? '',
      { kind: 'signal', name: 'go', payload: 'called' },
      at,
    );
    await signalled.clock.advance(2000);
    expect(await running).toMatchObject({ output: { waits: 'called' } });
    expect(endsOf(signalled.events)).toEqual({ waits: 'completed' });
  });

  it('refuses an invalid duration', async () => {
    const { engine } = testEngine();
    const result = await engine.start({ workflow: waiting(ctx => ctx.sleep('soon')) });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_FAILED' } });
  });
});

describe('an approval', () => {
  const gate = approve('gate', { message: 'Ship it?', choices: ['ship', 'hold', 'reject'] });
  const ship = step('ship', { after: { gate }, run: ({ gate }) => gate });
  const { model } = workflow('w', { steps: [gate, ship] });

  it('passes on the choice, its author and the comment', async () => {
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    await store.post(
      runId,
      { kind: 'approval', step: 'gate', choice: 'hold', by: 'ana', comment: 'later' },
      at,
    );
    const result = await engine.resume({ workflow: model, runId });
    expect(result).toMatchObject({
      status: 'completed',
      output: { ship: { choice: 'hold', by: 'ana', comment: 'later' } },
    });
  });

  it('fails the step when it is rejected', async () => {
    const { engine, store, events } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    await store.post(
      runId,
      { kind: 'approval', step: 'gate', choice: 'reject', by: 'ana', comment: 'not today' },
      at,
    );
    const result = await engine.resume({ workflow: model, runId });
    expect(result).toMatchObject({
      status: 'failed',
      step: 'gate',
      error: { code: 'APPROVAL_REJECTED', message: 'rejected by ana: not today' },
    });
    expect(endsOf(events)).toEqual({ gate: 'failed', ship: 'skipped' });
  });

  it('ignores choices that are not offered, steps that do not wait, and second answers', async () => {
    const { engine, store, history } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'maybe' }, at);
    await store.post(runId, { kind: 'approval', step: 'ship', choice: 'ship' }, at);
    await store.post(runId, { kind: 'approval', step: 'nowhere', choice: 'ship' }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({ status: 'waiting' });
    expect(await store.inbox(runId)).toEqual([]);
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'ship' }, at);
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'reject' }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      status: 'completed',
      output: { ship: { choice: 'ship' } },
    });
    expect(eventsOf(await history(runId), 'approval.given')).toHaveLength(1);
  });

  it('does not block or hide a failure of another step', async () => {
    const gateOnly = approve('gate', { message: 'ok?' });
    const bad = step('bad', {
      run: (): string => {
        throw new Error('beside');
      },
    });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [gateOnly, bad] }).model });
    expect(result).toMatchObject({ status: 'failed', step: 'bad' });
    expect(endsOf(events)).toEqual({ gate: 'cancelled', bad: 'failed' });
  });

  it.each([
    { answeredAfterMs: 3_599_000, status: 'completed' },
    { answeredAfterMs: 3_601_000, status: 'failed' },
  ])(
    'ends $status if answered after $answeredAfterMs ms while no process runs',
    async ({ answeredAfterMs, status }) => {
      const timed = approve('gate', { message: 'ok?', timeout: '1h' });
      const { engine, clock, store } = timedEngine();
      const { model } = workflow('w', { steps: [timed] });
      const { runId } = await clock.until(engine.start({ workflow: model }));
      const answeredAt = toTimestamp(clock.now() + answeredAfterMs);
      await clock.advance(7_200_000);
      await store.post(runId, { kind: 'approval', step: 'gate', choice: 'approve' }, answeredAt);
      expect(await clock.until(engine.resume({ workflow: model, runId }))).toMatchObject({ status });
    },
  );

  it('fails its step with TIMEOUT when its timeout passes', async () => {
    const timed = approve('gate', { message: 'ok?', timeout: '1h' });
    const { engine, clock, events } = timedEngine();
    const result = await clock.until(
      engine.start({ workflow: workflow('w', { steps: [timed] }).model, wait: true }),
    );
    expect(result).toMatchObject({ status: 'failed', step: 'gate', error: { code: 'TIMEOUT' } });
    expect(summary(events)).toMatchInlineSnapshot(`
      [
        "run.started",
        "step.started gate",
        "approval.requested gate",
        "step.suspended gate",
        "timer.fired gate",
        "step.failed gate",
        "run.failed",
      ]
    `);
  });
});
