import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { canonicalOrder, digestsOf } from '../../src/engine/history/digest.ts';
import type { RunResult } from '../../src/engine/run/result.ts';
import { unitOf, unitOfEvent } from '../../src/engine/state/graph.ts';
import { maybe, step, workflow } from '../../src/workflow/builder/index.ts';
import type { FanOut, StepContext, StepModel, WorkflowModel } from '../../src/workflow/model.ts';
import { barrier, deferred, testEngine } from '../support/engine.ts';
import { at, eventsOf, eventWatch } from './support.ts';

const copies = (total: number, more: Partial<FanOut> = {}): FanOut => ({
  kind: 'concurrency',
  items: () => Array.from({ length: total }, () => ({})),
  onFailure: 'fail-fast',
  ...more,
});

const matrix = (
  items: readonly { readonly [key: string]: number }[],
  more: Partial<FanOut> = {},
): FanOut => ({
  kind: 'matrix',
  items: () => items,
  onFailure: 'fail-fast',
  ...more,
});

/** Returns the model with one of its steps fanned out. */
function fanned({ model }: { readonly model: WorkflowModel }, id: string, fanOut: FanOut): WorkflowModel {
  const fanOne = (each: StepModel): StepModel =>
    each.id === id ? { ...each, fingerprint: each.fingerprint, fanOut } : each;
  return { ...model, steps: model.steps.map(fanOne) };
}

const one = (run: (ctx: StepContext) => unknown, id = 'fix') =>
  workflow('w', { steps: [step(id, { run: (_, ctx) => run(ctx) })] });

const outputOf = (result: RunResult): Record<string, unknown> =>
  result.status === 'completed' ? (result.output as Record<string, unknown>) : {};

/** Returns the stable parts of the results of a step. */
const results = (output: unknown) =>
  (output as { worker_results: { index: number; status: string; output?: unknown }[] }).worker_results.map(
    ({ index, status, output }) => [index, status, output],
  );

describe('a fan-out', () => {
  it('runs its copies in parallel, gives each its index, and returns their results in order', async () => {
    const together = barrier(3);
    const model = fanned(
      one(async ctx => {
        await together();
        return `copy ${ctx.worker}`;
      }),
      'fix',
      copies(3),
    );
    const { engine, history } = testEngine();
    const result = await engine.start({ workflow: model });
    expect(result).toMatchObject({
      status: 'completed',
      output: { fix: { total_workers: 3, success_count: 3, fail_count: 0, cancelled_count: 0 } },
    });
    const { fix } = outputOf(result) as { fix: { worker_results: object[] } };
    expect(results(fix)).toEqual([
      [0, 'completed', 'copy 0'],
      [1, 'completed', 'copy 1'],
      [2, 'completed', 'copy 2'],
    ]);
    expect(fix.worker_results[1]).toEqual({
      index: 1,
      status: 'completed',
      output: 'copy 1',
      workspace: null,
      branch: null,
      cost: 0,
      duration_ms: expect.any(Number),
    });
    const events = canonicalOrder(await history(result.runId));
    expect(events.map(event => `${event.type} ${unitOfEvent(event) ?? ''}`)).toEqual([
      'run.started ',
      'step.started fix',
      'fanout.expanded fix',
      'step.completed fix',
      'step.started fix:0',
      'step.completed fix:0',
      'step.started fix:1',
      'step.completed fix:1',
      'step.started fix:2',
      'step.completed fix:2',
      'run.completed ',
    ]);
  });

  it('gives each copy of a matrix its values and dependants the same output shape', async () => {
    const docs = step('docs', { run: (_, ctx) => ctx.matrix?.['n'] });
    const sum = step('sum', {
      after: { docs },
      run: ({ docs }) => results(docs).map(([, , output]) => Number(output) * 2),
    });
    const model = fanned(
      workflow('w', { steps: [docs, sum] }),
      'docs',
      matrix([{ n: 3 }, { n: 1 }, { n: 2 }], { maxParallel: 1 }),
    );
    const { engine } = testEngine();
    expect(await engine.start({ workflow: model })).toMatchObject({
      status: 'completed',
      output: { sum: [6, 2, 4] },
    });
  });

  it('completes immediately if it has no items', async () => {
    const { engine } = testEngine();
    expect(
      await engine.start({
        workflow: fanned(
          one(() => 1),
          'fix',
          matrix([]),
        ),
      }),
    ).toMatchObject({
      status: 'completed',
      output: { fix: { worker_results: [], total_workers: 0 } },
    });
  });

  it('runs all of 20 copies with 5 slots, never more than 5 in parallel', async () => {
    let running = 0;
    let peak = 0;
    const model = fanned(
      one(async () => {
        peak = Math.max(peak, ++running);
        await new Promise(resolve => setImmediate(resolve));
        running--;
      }),
      'fix',
      copies(20),
    );
    const { engine } = testEngine();
    expect(await engine.start({ workflow: model, maxConcurrentWorkers: 5 })).toMatchObject({
      output: { fix: { success_count: 20 } },
    });
    expect(peak).toBe(5);
  });

  it.each([1, 2, 3])('never runs more copies than max-parallel %i, whatever their kind', async limit => {
    for (const kind of ['function', 'uses']) {
      let running = 0;
      let peak = 0;
      const busy = step('busy', {
        run: async () => {
          peak = Math.max(peak, ++running);
          await new Promise(resolve => setImmediate(resolve));
          running--;
        },
      });
      const steps =
        kind === 'function' ? [busy] : [step('busy', { uses: workflow('child', { steps: [busy] }) })];
      const model = fanned(workflow('w', { steps }), 'busy', copies(7, { maxParallel: limit }));
      const { engine } = testEngine();
      expect(await engine.start({ workflow: model })).toMatchObject({ status: 'completed' });
      expect(peak).toBe(limit);
    }
  });

  it('cancels the other copies when one fails, names that one, and reports how each of them ended', async () => {
    const all = barrier(3);
    const model = fanned(
      one(async ctx => {
        if (ctx.worker === 3) return 'never';
        await all();
        if (ctx.worker === 1) throw new Error('no luck');
        await new Promise((_, reject) => ctx.signal.addEventListener('abort', reject, { once: true }));
        return 'never';
      }),
      'fix',
      copies(4),
    );
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: model, maxConcurrentWorkers: 3 });
    expect(result).toMatchObject({ status: 'failed', step: 'fix:1', error: { message: 'no luck' } });
    const [failed] = eventsOf(events, 'step.failed', 'fix').filter(({ worker }) => worker === undefined);
    expect(failed?.data.output).toMatchObject({
      total_workers: 4,
      success_count: 0,
      fail_count: 1,
      cancelled_count: 3,
    });
    expect(results(failed?.data.output).map(([, status]) => status)).toEqual([
      'cancelled',
      'failed',
      'cancelled',
      'cancelled',
    ]);
  });

  it('lets the other copies finish with continue and shows all of them to a tolerant dependant', async () => {
    const fix = step('fix', {
      run: (_, ctx) => {
        if (ctx.worker === 0) throw new Error('no luck');
        return ctx.worker;
      },
    });
    const after = step('after', { after: { fix: maybe(fix) }, run: ({ fix }) => results(fix) });
    const plain = step('plain', { after: { fix }, run: () => 'never' });
    const model = fanned(
      workflow('w', { steps: [fix, after, plain], onFailure: 'continue' }),
      'fix',
      copies(3, { onFailure: 'continue' }),
    );
    const { engine, events } = testEngine();
    expect(await engine.start({ workflow: model })).toMatchObject({ status: 'failed', step: 'fix:0' });
    const [completed] = eventsOf(events, 'step.completed', 'after');
    expect(completed?.data.output).toEqual([
      [0, 'failed', null],
      [1, 'completed', 1],
      [2, 'completed', 2],
    ]);
    expect(eventsOf(events, 'step.skipped', 'plain')).toHaveLength(1);
  });

  it('starts nothing new after a failure with finish-running', async () => {
    const failed = deferred();
    const watch = eventWatch();
    const model = fanned(
      one(async ctx => {
        if (ctx.worker === 0) throw new Error('no luck');
        await failed.promise;
        return 'done';
      }),
      'fix',
      copies(3, { onFailure: 'finish-running' }),
    );
    const { engine, history } = testEngine({ observe: watch.observe });
    const running = engine.start({ workflow: model, maxConcurrentWorkers: 2 });
    await watch.seenEvent(({ type, worker }) => type === 'step.failed' && worker === 0);
    failed.resolve();
    const { runId } = await running;
    const [end] = eventsOf(await history(runId), 'step.failed', 'fix').filter(
      ({ worker }) => worker === undefined,
    );
    expect(results(end?.data.output).map(([, status]) => status)).toEqual([
      'failed',
      'completed',
      'cancelled',
    ]);
  });

  it('retries each copy separately', async () => {
    const attempts: string[] = [];
    const flaky = step('flaky', {
      retry: { attempts: 3, backoff: 1 },
      run: (_, ctx) => {
        attempts.push(`${ctx.worker}#${ctx.attempt}`);
        if (ctx.attempt <= Number(ctx.worker)) throw new Error('not yet');
        return ctx.attempt;
      },
    });
    const { engine } = testEngine();
    const result = await engine.start({
      workflow: fanned(workflow('w', { steps: [flaky] }), 'flaky', copies(3)),
    });
    expect(results(outputOf(result)['flaky'])).toEqual([
      [0, 'completed', 1],
      [1, 'completed', 2],
      [2, 'completed', 3],
    ]);
    expect(attempts.sort()).toEqual(['0#1', '1#1', '1#2', '2#1', '2#2', '2#3']);
  });

  it('gives each copy of a child workflow its own output', async () => {
    const input = z.object({ n: z.number() });
    const double = step('double', { input, run: (_, ctx) => ctx.input.n * 2 });
    const child = workflow('child', { input, steps: [double], output: { double } });
    const model = fanned(
      workflow('w', { steps: [step('use', { uses: child, with: () => ({ n: 0 }) })] }),
      'use',
      matrix([{ n: 1 }, { n: 2 }, { n: 3 }]),
    );
    const [use] = model.steps;
    if (use?.body.kind !== 'uses') throw new Error('not a child workflow');
    const body = { ...use.body, input: (scope: { matrix?: object | undefined }) => scope.matrix };
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: { ...model, steps: [{ ...use, body }] } });
    expect(results(outputOf(result)['use'])).toEqual([
      [0, 'completed', { double: 2 }],
      [1, 'completed', { double: 4 }],
      [2, 'completed', { double: 6 }],
    ]);
    expect(eventsOf(events, 'step.completed', 'use:2/double')).toHaveLength(1);
  });

  it('does not rerun finished copies when the run is resumed after a failure', async () => {
    const ran: string[] = [];
    let broken = true;
    const fix = step('fix', {
      run: (_, ctx) => {
        ran.push(unitOf(ctx.step, ctx.worker));
        if (broken && ctx.worker === 1) throw new Error('no luck');
        return ctx.worker;
      },
    });
    const after = step('after', { after: { fix }, run: ({ fix }) => results(fix) });
    const model = fanned(workflow('w', { steps: [fix, after] }), 'fix', copies(3, { onFailure: 'continue' }));
    const { engine, history } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    expect(ran.sort()).toEqual(['fix:0', 'fix:1', 'fix:2']);
    ran.length = 0;
    broken = false;
    const resumed = await engine.resume({ workflow: model, runId });
    expect(ran).toEqual(['fix:1']);
    expect(resumed).toMatchObject({
      status: 'completed',
      output: {
        after: [
          [0, 'completed', 0],
          [1, 'completed', 1],
          [2, 'completed', 2],
        ],
      },
    });
    await expect(engine.replay({ workflow: model, runId })).resolves.toMatchObject({ ended: true });
    const fresh = await engine.start({ workflow: model });
    expect(digestsOf(await history(runId)).outcome).toBe(digestsOf(await history(fresh.runId)).outcome);
  });

  it('can be forked from one of its copies', async () => {
    const ran: string[] = [];
    const fix = step('fix', { run: (_, ctx) => ran.push(unitOf(ctx.step, ctx.worker)) });
    const after = step('after', { after: { fix }, run: () => ran.push('after') });
    const model = fanned(workflow('w', { steps: [fix, after] }), 'fix', copies(3));
    const { engine } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    ran.length = 0;
    expect(await engine.fork({ workflow: model, runId, from: 'fix:2' })).toMatchObject({
      status: 'completed',
    });
    expect(ran).toEqual(['fix:2', 'after']);
    ran.length = 0;
    await engine.fork({ workflow: model, runId, from: 'fix' });
    expect(ran.sort()).toEqual(['after', 'fix:0', 'fix:1', 'fix:2']);
  });

  it('is cancelled together with all of its copies', async () => {
    const all = barrier(2);
    const watch = eventWatch();
    const model = fanned(
      one(async ctx => {
        const aborted = new Promise((_, reject) =>
          ctx.signal.addEventListener('abort', reject, { once: true }),
        );
        await all();
        return aborted;
      }),
      'fix',
      copies(2),
    );
    const { engine, store, events } = testEngine({ observe: watch.observe });
    const running = engine.start({ workflow: model });
    const { runId } = await watch.seenEvent(({ type, worker }) => type === 'step.started' && worker === 1);
    await store.post(runId, { kind: 'cancel', reason: 'enough' }, at);
    expect(await running).toMatchObject({ status: 'cancelled', reason: 'enough' });
    const [end] = eventsOf(events, 'step.cancelled', 'fix').filter(({ worker }) => worker === undefined);
    expect(end?.data.output).toMatchObject({ cancelled_count: 2, fail_count: 0 });
  });

  it('fails with the reason if its items cannot be evaluated', async () => {
    const items = () => {
      throw new Error('not a list');
    };
    const { engine } = testEngine();
    expect(
      await engine.start({
        workflow: fanned(
          one(() => 1),
          'fix',
          { ...matrix([]), items },
        ),
      }),
    ).toMatchObject({
      status: 'failed',
      step: 'fix',
      error: { code: 'EXPRESSION_FAILED', message: 'could not evaluate the matrix items: not a list' },
    });
  });

  it('fails before it has more than 10,000 copies, and counts those of the steps around it', async () => {
    const { engine } = testEngine();
    const inner = fanned(
      one(() => 1, 'inner'),
      'inner',
      matrix(Array.from({ length: 5001 }, (_, n) => ({ n }))),
    );
    const around = workflow('w', { steps: [step('around', { uses: { ...one(() => 1), model: inner } })] });
    expect(await engine.start({ workflow: fanned(around, 'around', copies(2)) })).toMatchObject({
      status: 'failed',
      error: {
        message: expect.stringContaining(
          'around:0/inner has 5001 copies, in each of 2 copies of the workflow; at most 10000 are allowed',
        ),
      },
    });
    const many = fanned(
      one(() => 1),
      'fix',
      copies(10_001),
    );
    expect(await engine.start({ workflow: many })).toMatchObject({
      status: 'failed',
      error: {
        code: 'EXPRESSION_FAILED',
        message: expect.stringContaining('fix has 10001 copies; at most 10000 are allowed'),
      },
    });
  });
});
