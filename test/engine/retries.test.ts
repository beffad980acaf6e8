import { describe, expect, it } from 'vitest';
import { step, workflow } from '../../src/workflow/builder/index.ts';
import { deferred, summary } from '../support/engine.ts';
import { endsOf, eventsOf, timedEngine } from './support.ts';

const failing = (error: () => unknown, succeedsAt = Number.POSITIVE_INFINITY) => {
  let tries = 0;
  return () => {
    if (++tries >= succeedsAt) return `after ${tries}`;
    throw error();
  };
};

describe('a retry', () => {
  it('waits longer each time up to the maximum, and attempts count from 1', async () => {
    const flaky = step('flaky', {
      retry: { attempts: 5, backoff: { initial: '1s', factor: 3, max: '5s' } },
      run: failing(() => new Error('not yet'), 5),
    });
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [flaky] }).model }));
    expect(result).toMatchObject({ status: 'completed', output: { flaky: 'after 5' } });
    expect(eventsOf(events, 'step.retrying').map(({ attempt, data }) => [attempt, data.delayMs])).toEqual([
      [1, 1000],
      [2, 3000],
      [3, 5000],
      [4, 5000],
    ]);
    const starts = eventsOf(events, 'step.started').map(event => Date.parse(event.at));
    expect(starts.map(start => start - (starts[0] ?? 0))).toEqual([0, 1000, 4000, 9000, 14_000]);
    expect(eventsOf(events, 'step.started').map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
  });

  it('does not start early because of a sleep that the failed attempt left behind', async () => {
    let tries = 0;
    const flaky = step('flaky', {
      retry: { attempts: 2, backoff: '10s' },
      run: async (_, ctx) => {
        if (++tries > 1) return 'done';
        void ctx.sleep('1s');
        await ctx.sleep(0);
        throw new Error('too early');
      },
    });
    const { engine, events, clock } = timedEngine();
    await clock.until(engine.start({ workflow: workflow('w', { steps: [flaky] }).model }));
    const [first, second] = eventsOf(events, 'step.started').map(event => Date.parse(event.at));
    expect((second ?? 0) - (first ?? 0)).toBe(10_000);
  });

  it('does not follow the last attempt, whose error is reported', async () => {
    let tries = 0;
    const flaky = step('flaky', {
      retry: { attempts: 3, backoff: 10 },
      run: (): string => {
        throw new Error(`try ${++tries}`);
      },
    });
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [flaky] }).model }));
    expect(result).toMatchObject({ status: 'failed', step: 'flaky', error: { message: 'try 3' } });
    expect(summary(events)).toMatchInlineSnapshot(`
      [
        "run.started",
        "step.started flaky",
        "step.retrying flaky",
        "timer.fired flaky",
        "step.started flaky #2",
        "step.retrying flaky #2",
        "timer.fired flaky #2",
        "step.started flaky #3",
        "step.failed flaky #3",
        "run.failed",
      ]
    `);
  });

  it('happens only for the listed errors, by class or by code', async () => {
    const busy = () => Object.assign(new Error('busy'), { code: 'EBUSY' });
    const byCode = step('byCode', {
      retry: { attempts: 3, backoff: 1, on: ['EBUSY'] },
      run: failing(busy, 2),
    });
    const byName = step('byName', {
      retry: { attempts: 3, backoff: 1, on: ['TypeError'] },
      run: failing(() => new TypeError('no'), 2),
    });
    const byFunction = step('byFunction', {
      retry: { attempts: 3, backoff: 1, on: ({ message }) => message === 'again' },
      run: failing(() => new Error('again'), 2),
    });
    const other = step('other', {
      retry: { attempts: 3, backoff: 1, on: ['EBUSY'] },
      run: failing(() => new Error('final')),
    });
    const { engine, events, clock } = timedEngine();
    const { model } = workflow('w', { steps: [byCode, byName, byFunction, other], onFailure: 'continue' });
    await clock.until(engine.start({ workflow: model }));
    expect(endsOf(events)).toEqual({
      byCode: 'completed',
      byName: 'completed',
      byFunction: 'completed',
      other: 'failed',
    });
    expect(eventsOf(events, 'step.retrying', 'other')).toEqual([]);
  });

  it('does not happen if its rule throws', async () => {
    const odd = step('odd', {
      retry: {
        attempts: 3,
        backoff: 1,
        on: () => {
          throw new Error('the rule is broken');
        },
      },
      run: failing(() => new Error('first cause')),
    });
    const { engine, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [odd] }).model }));
    expect(result).toMatchObject({ status: 'failed', error: { message: 'first cause' } });
  });

  it('holds no slot while it waits', async () => {
    const flaky = step('flaky', {
      retry: { attempts: 2, backoff: '1h' },
      run: failing(() => new Error('no'), 2),
    });
    const other = step('other', { run: () => 'other' });
    const { engine, events, clock } = timedEngine();
    await clock.until(
      engine.start({ workflow: workflow('w', { steps: [flaky, other] }).model, maxConcurrentWorkers: 1 }),
    );
    const order = summary(events);
    expect(order.indexOf('step.completed other')).toBeLessThan(order.indexOf('step.started flaky #2'));
  });

  it('does not happen after a sibling has failed the run', async () => {
    const failed = deferred();
    const flaky = step('flaky', {
      retry: { attempts: 5, backoff: '1h' },
      run: failing(() => new Error('flaky')),
    });
    const bad = step('bad', {
      run: async (): Promise<string> => {
        await failed.promise;
        throw new Error('bad');
      },
    });
    const { engine, events, clock } = timedEngine({
      observe: observation => {
        if (observation.kind === 'events' && eventsOf(observation.events, 'step.retrying').length > 0)
          failed.resolve();
      },
    });
    const result = await clock.until(
      engine.start({ workflow: workflow('w', { steps: [flaky, bad] }).model }),
    );
    expect(result).toMatchObject({ status: 'failed', step: 'bad', error: { message: 'bad' } });
    expect(endsOf(events)).toEqual({ flaky: 'cancelled', bad: 'failed' });
  });

  it('gets all its attempts again when a failed run is resumed, numbered from the last attempt', async () => {
    const flaky = step('flaky', {
      retry: { attempts: 2, backoff: 10 },
      run: failing(() => new Error('no'), 4),
    });
    const { model } = workflow('w', { steps: [flaky] });
    const { engine, events, clock } = timedEngine();
    const first = await clock.until(engine.start({ workflow: model }));
    expect(first.status).toBe('failed');
    const second = await clock.until(engine.resume({ workflow: model, runId: first.runId }));
    expect(second).toMatchObject({ status: 'completed', output: { flaky: 'after 4' } });
    expect(eventsOf(events, 'step.started').map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  });
});

describe('a timeout', () => {
  const untilAborted = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

  it('fails the attempt, and the step can be retried', async () => {
    let tries = 0;
    const slow = step('slow', {
      timeout: '10s',
      retry: { attempts: 2, backoff: '1s' },
      run: (_, ctx) => (++tries === 1 ? untilAborted(ctx.signal) : 'in time'),
    });
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [slow] }).model }));
    expect(result).toMatchObject({ status: 'completed', output: { slow: 'in time' } });
    const [retrying] = eventsOf(events, 'step.retrying');
    expect(retrying?.data.error).toMatchObject({
      code: 'TIMEOUT',
      message: 'the attempt took longer than 10.0s',
    });
    expect(summary(events)).toMatchInlineSnapshot(`
      [
        "run.started",
        "step.started slow",
        "timer.fired slow",
        "step.retrying slow",
        "timer.fired slow",
        "step.started slow #2",
        "step.completed slow #2",
        "run.completed",
      ]
    `);
  });

  it('does not count the time that an attempt sleeps', async () => {
    const patient = step('patient', {
      timeout: '10s',
      run: async (_, ctx) => {
        await ctx.sleep('1h');
        return 'slept';
      },
    });
    const { engine, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [patient] }).model }));
    expect(result).toMatchObject({ status: 'completed', output: { patient: 'slept' } });
  });

  it('counts all the time that an attempt works, before and after its waits', async () => {
    const { engine, clock, environment } = timedEngine();
    const work = (ctx: { signal: AbortSignal }) =>
      environment.clock.waitUntil(clock.now() + 7000, ctx.signal);
    const busy = step('busy', {
      timeout: '10s',
      run: async (_, ctx) => {
        await work(ctx);
        await ctx.sleep('1h');
        await work(ctx);
      },
    });
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [busy] }).model }));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT' } });
  });

  it('counts attempts and waits if it is for the whole step, and is final', async () => {
    const slow = step('slow', {
      timeout: { step: '25s' },
      retry: { attempts: 100, backoff: '10s' },
      run: failing(() => new Error('no')),
    });
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [slow] }).model }));
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'TIMEOUT', message: 'the step took longer than 25.0s' },
    });
    expect(eventsOf(events, 'step.started')).toHaveLength(3);
  });

  it('reaches steps inside a child workflow', async () => {
    let tries = 0;
    const inner = step('inner', { run: (_, ctx) => (++tries === 1 ? untilAborted(ctx.signal) : 'in time') });
    const child = workflow('child', { steps: [inner] });
    const outer = step('outer', { uses: child, timeout: '10s', retry: { attempts: 2, backoff: '1s' } });
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [outer] }).model }));
    expect(result).toMatchObject({ status: 'completed', output: { outer: { inner: 'in time' } } });
    expect(summary(events)).toMatchInlineSnapshot(`
      [
        "run.started",
        "step.started outer",
        "step.started outer/inner",
        "timer.fired outer",
        "step.cancelled outer/inner",
        "step.retrying outer",
        "timer.fired outer",
        "step.started outer #2",
        "step.started outer/inner #2",
        "step.completed outer/inner #2",
        "step.completed outer #2",
        "run.completed",
      ]
    `);
  });

  it('abandons a function that ignores it after the grace period', async () => {
    const deaf = step('deaf', { timeout: '10s', run: () => new Promise<string>(() => {}) });
    const { engine, events, clock } = timedEngine({ settings: { graceMs: 3000 } });
    const result = await clock.until(engine.start({ workflow: workflow('w', { steps: [deaf] }).model }));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'TIMEOUT' } });
    const [fired] = eventsOf(events, 'timer.fired');
    const [failed] = eventsOf(events, 'step.failed');
    expect(Date.parse(failed?.at ?? '') - Date.parse(fired?.at ?? '')).toBe(3000);
  });
});
