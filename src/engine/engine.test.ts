import { describe, expect, it } from 'vitest';
import { barrier, deferred, summary, testEngine } from '../../test/support/engine.ts';
import { approve, maybe, step, workflow } from '../workflow/builder/index.ts';
import { canonicalOrder } from './history/digest.ts';

describe('parallel execution', () => {
  it('runs two steps without dependencies at the same time', async () => {
    const meet = barrier(2);
    const a = step('a', { run: () => meet() });
    const b = step('b', { run: () => meet() });
    const { engine } = testEngine();
    await expect(engine.start({ workflow: workflow('w', { steps: [a, b] }).model })).resolves.toMatchObject({
      status: 'completed',
    });
  });

  it('waits for every dependency of a diamond and passes on their outputs', async () => {
    const a = step('a', { run: () => 1 });
    const b = step('b', { after: { a }, run: ({ a }) => a + 1 });
    const c = step('c', { after: { a }, run: ({ a }) => a + 2 });
    const d = step('d', { after: { b, c }, run: ({ b, c }) => ({ b, c }) });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('diamond', { steps: [a, b, c, d] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { d: { b: 2, c: 3 } } });
    const started = events.findIndex(event => event.type === 'step.started' && event.step === 'd');
    const ended = ['b', 'c'].map(id =>
      events.findIndex(event => event.type === 'step.completed' && event.step === id),
    );
    expect(Math.max(...ended)).toBeLessThan(started);
  });

  it('lets a fast branch continue while a slow sibling runs', async () => {
    const dRan = deferred();
    const a = step('a', { run: () => 'a' });
    const fast = step('fast', { after: { a }, run: () => 'fast' });
    const slow = step('slow', { after: { a }, run: () => dRan.promise });
    const d = step('d', { after: { fast }, run: () => dRan.resolve() });
    const { engine, events } = testEngine();
    await engine.start({ workflow: workflow('w', { steps: [a, fast, slow, d] }).model });
    expect(summary(events).indexOf('step.started d')).toBeLessThan(
      summary(events).indexOf('step.completed slow'),
    );
  });

  it('never runs more steps than there are slots, and drops none', async () => {
    let running = 0;
    let peak = 0;
    const steps = Array.from({ length: 30 }, (_, index) =>
      step(`s${index}`, {
        run: async () => {
          peak = Math.max(peak, ++running);
          await new Promise(resolve => setImmediate(resolve));
          running--;
          return index;
        },
      }),
    );
    const { engine, events } = testEngine();
    await engine.start({ workflow: workflow('wide', { steps }).model, maxConcurrentWorkers: 4 });
    expect(peak).toBe(4);
    expect(events.filter(({ type }) => type === 'step.completed')).toHaveLength(30);
  });
});

describe('failure policies', () => {
  const trio = (onFailure: 'fail-fast' | 'finish-running' | 'continue') => {
    const together = barrier(3);
    const failed = deferred();
    const bad = step('bad', {
      run: async () => {
        await together();
        throw new Error('boom');
      },
    });
    const first = step('first', { run: () => 'kept' });
    const sibling = (id: string) =>
      step(id, {
        after: { first },
        run: async (_, ctx) => {
          await together();
          if (onFailure !== 'fail-fast') return failed.promise.then(() => 'finished');
          await new Promise((_, reject) =>
            ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
          );
          return 'never';
        },
      });
    const heeds = sibling('heeds');
    const alsoHeeds = sibling('also');
    const later = step('later', { after: { heeds }, run: () => 'later' });
    const dependant = step('dependant', { after: { bad }, run: () => 'never' });
    const model = workflow('trio', {
      steps: [first, bad, heeds, alsoHeeds, later, dependant],
      onFailure,
    }).model;
    return { model, failed };
  };
  const run = async (onFailure: 'fail-fast' | 'finish-running' | 'continue') => {
    const { model, failed } = trio(onFailure);
    const { engine, events, history } = testEngine({
      observe: observation => {
        if (observation.kind === 'events' && observation.events.some(({ type }) => type === 'step.failed'))
          failed.resolve();
      },
    });
    const result = await engine.start({ workflow: model });
    expect(await history(result.runId)).toEqual(events);
    return {
      result,
      ends: Object.fromEntries(
        events.flatMap(({ type, step: path }) =>
          path && /completed|failed|cancelled|skipped/.test(type) ? [[path, type.slice(5)]] : [],
        ),
      ),
    };
  };

  it('cancel siblings with fail-fast, keep finished steps and report the first cause', async () => {
    const { result, ends } = await run('fail-fast');
    expect(result).toMatchObject({
      status: 'failed',
      step: 'bad',
      error: { code: 'STEP_FAILED', message: 'boom' },
    });
    expect(ends).toEqual({
      first: 'completed',
      bad: 'failed',
      heeds: 'cancelled',
      also: 'cancelled',
      later: 'skipped',
      dependant: 'skipped',
    });
  });

  it('start nothing new with finish-running and let running steps end', async () => {
    const { result, ends } = await run('finish-running');
    expect(result).toMatchObject({ status: 'failed', step: 'bad' });
    expect(ends).toEqual({
      first: 'completed',
      bad: 'failed',
      heeds: 'completed',
      also: 'completed',
      later: 'skipped',
      dependant: 'skipped',
    });
  });

  it('skip the dependants of the failed step with continue and run the rest', async () => {
    const { result, ends } = await run('continue');
    expect(result).toMatchObject({ status: 'failed', step: 'bad' });
    expect(ends).toEqual({
      first: 'completed',
      bad: 'failed',
      heeds: 'completed',
      also: 'completed',
      later: 'completed',
      dependant: 'skipped',
    });
  });

  it('let the run complete when an optional step fails, and still run a tolerant dependant', async () => {
    const risky = step('risky', {
      optional: true,
      run: (): number => {
        throw new TypeError('no');
      },
    });
    const strict = step('strict', { after: { risky }, run: () => 'never' });
    const lenient = step('lenient', {
      after: { risky: maybe(risky) },
      run: ({ risky }) => ({ got: risky ?? null }),
    });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [risky, strict, lenient] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { strict: null, lenient: { got: null } } });
    expect(summary(events)).toContain('step.skipped strict');
  });
});

describe('suspension', () => {
  it('releases a run that waits for an approval and uses the answer on resume', async () => {
    const side = step('side', { run: () => 'done' });
    const ok = approve('ok', { message: 'Ship it?' });
    const ship = step('ship', { after: { ok }, run: ({ ok }) => ok.choice });
    const { engine, store, history } = testEngine();
    const { model } = workflow('gate', { steps: [side, ok, ship] });
    const first = await engine.start({ workflow: model });
    expect(first).toMatchObject({
      status: 'waiting',
      waiting: [{ step: 'ok', on: 'approval', message: 'Ship it?' }],
    });
    await store.post(
      first.runId,
      { kind: 'approval', step: 'ok', choice: 'approve', by: 'ana' },
      '2026-01-01T00:00:00.000Z',
    );
    expect(await engine.resume({ workflow: model, runId: first.runId })).toMatchObject({
      status: 'completed',
      output: { ship: 'approve' },
    });
    expect(summary(canonicalOrder(await history(first.runId)))).toMatchInlineSnapshot(`
      [
        "run.started",
        "run.resumed",
        "step.started side",
        "step.completed side",
        "step.started ok",
        "approval.requested ok",
        "step.suspended ok",
        "approval.given ok",
        "step.completed ok",
        "step.started ship",
        "step.completed ship",
        "run.completed",
      ]
    `);
  });

  it('delivers an early signal to the step that waits for it later', async () => {
    const asked = deferred();
    const waits = step('waits', {
      run: async (_, ctx) => {
        await asked.promise;
        return ctx.waitForSignal<{ n: number }>('go');
      },
    });
    const { engine, store, events } = testEngine({
      observe: observation => {
        if (observation.kind !== 'events') return;
        const [started] = observation.events;
        if (started?.type === 'run.started')
          void store.post(started.runId, { kind: 'signal', name: 'go', payload: { n: 7 } }, started.at);
        if (observation.events.some(({ type }) => type === 'signal.received')) asked.resolve();
      },
    });
    const result = await engine.start({ workflow: workflow('w', { steps: [waits] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { waits: { n: 7 } } });
    expect(summary(canonicalOrder(events))).toMatchInlineSnapshot(`
      [
        "run.started",
        "signal.received",
        "step.started waits",
        "step.suspended waits",
        "step.resumed waits",
        "step.completed waits",
        "run.completed",
      ]
    `);
  });

  it('lets a step sleep durably without holding a slot', async () => {
    const sleeper = step('sleeper', {
      run: async (_, ctx) => {
        await ctx.sleep(20);
        return 'slept';
      },
    });
    const other = step('other', { run: () => 'other' });
    const { engine, events } = testEngine();
    const result = await engine.start({
      workflow: workflow('w', { steps: [sleeper, other] }).model,
      maxConcurrentWorkers: 1,
    });
    expect(result).toMatchObject({ status: 'completed', output: { sleeper: 'slept', other: 'other' } });
    expect(summary(events).indexOf('step.completed other')).toBeLessThan(
      summary(events).indexOf('step.resumed sleeper'),
    );
  });
});

it('refuses invalid limits and workflows before anything is written', async () => {
  const { engine, store } = testEngine();
  const { model } = workflow('w', { steps: [step('a', { run: () => 1 })] });
  for (const maxConcurrentWorkers of [0, -1, 1.5, Number.NaN]) {
    await expect(engine.start({ workflow: model, maxConcurrentWorkers })).rejects.toMatchObject({
      code: 'USAGE',
    });
  }
  await expect(engine.start({} as never)).rejects.toMatchObject({ code: 'USAGE' });
  expect(await store.list()).toEqual([]);
});

it('keeps only the frames of the step in a stack, whatever the timing', async () => {
  const atOnce = step('atOnce', {
    optional: true,
    run: (): string => {
      throw new Error('at once');
    },
  });
  const later = step('later', {
    optional: true,
    run: async (): Promise<string> => {
      await new Promise(resolve => setTimeout(resolve, 1));
      throw new Error('later');
    },
  });
  const { engine, events } = testEngine();
  await engine.start({ workflow: workflow('w', { steps: [atOnce, later] }) });
  const stacks = events.flatMap(event =>
    event.type === 'step.failed' ? [event.data.error.stack ?? ''] : [],
  );
  expect(stacks).toHaveLength(2);
  for (const stack of stacks) {
    expect(stack).toContain('engine.test.ts');
    expect(stack).not.toMatch(/node:|function-step|live-world\.ts/);
  }
});
