import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { approve, shell, step, workflow } from '../../src/workflow/builder/index.ts';
import type { Scope, StepContext, WorkflowModel } from '../../src/workflow/model.ts';
import { barrier, testEngine } from '../support/engine.ts';
import { buildWorkflow, turnsFrom, turnTable, workflowSpec } from './random-workflow.ts';
import { at, eventsOf } from './support.ts';

/** Changes every object and list that can be reached, as careless code does. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const inner of Object.values(value)) spoil(inner);
  if (Array.isArray(value)) value.reverse().push('spoilt');
  else Object.assign(value, { spoilt: true });
}

function spoilScope({ inputs, matrix, steps }: Scope, ctx?: StepContext): void {
  spoil([inputs, matrix, ctx?.input, ctx?.matrix]);
  for (const { outputs } of Object.values(steps)) spoil(outputs);
}

/** Returns the workflow with functions that change everything they are given, after their own work. */
const spoiling = (model: WorkflowModel): WorkflowModel => ({
  ...model,
  steps: model.steps.map(step => {
    const { body } = step;
    if (body.kind === 'uses') return { ...step, body: { ...body, workflow: spoiling(body.workflow) } };
    if (body.kind !== 'function') return step;
    const run: typeof body.run = async (scope, ctx) => {
      const output = JSON.stringify(await body.run(scope, ctx));
      spoilScope(scope, ctx);
      return JSON.parse(output);
    };
    return { ...step, body: { ...body, run } };
  }),
});

const list = step('list', { run: () => ({ files: ['b.md', 'a.md'] }) });

describe('a value that a step receives', () => {
  it('belongs to that step: no workflow behaves differently if its functions change what they get', async () => {
    const spec = workflowSpec({ depth: 2, maxSteps: 7, onFailure: fc.constant('continue') });
    await fc.assert(
      fc.asyncProperty(spec, turnTable, async (spec, table) => {
        const careful = buildWorkflow(spec, { work: turnsFrom(table) });
        const careless = spoiling(buildWorkflow(spec, { work: turnsFrom(table) }));
        const expected = testEngine();
        const actual = testEngine();
        await expected.engine.start({ workflow: careful });
        const { runId, ...result } = await actual.engine.start({ workflow: careless });
        expect(digestsOf(actual.events)).toEqual(digestsOf(expected.events));
        const replayed = await actual.engine.replay({ workflow: careless, runId });
        expect(replayed.result).toEqual({ runId, ...result });
      }),
      { numRuns: 60 },
    );
  });

  it('is not affected by an earlier reader that sorts it', async () => {
    const sorted = step('sorted', { after: { list }, run: ({ list }) => list.files.sort().join(' ') });
    const first = step('first', { after: { list, sorted }, run: ({ list }) => list.files[0] });
    const { model } = workflow('w', { steps: [list, sorted, first] });
    const { engine } = testEngine();
    const result = await engine.start({ workflow: model });
    expect(result).toMatchObject({ status: 'completed', output: { first: 'b.md' } });
    expect(await engine.replay({ workflow: model, runId: result.runId })).toMatchObject({ result });
  });

  it('is not shared by parallel copies', async () => {
    const together = barrier(3);
    const count = step('count', {
      after: { list },
      concurrency: 3,
      run: async ({ list }) => {
        list.files.push('one more');
        await together();
        return list.files.length;
      },
    });
    const { engine, events } = testEngine();
    await engine.start({ workflow: workflow('w', { steps: [list, count] }) });
    const counts = eventsOf(events, 'step.completed', 'count').slice(0, 3);
    expect(counts.map(({ data }) => data.output)).toEqual([3, 3, 3]);
  });

  it('is not affected by a condition, a matrix, an environment or an approval message that changes it', async () => {
    const spoilt = (...values: unknown[]) => {
      spoil(values);
      return true;
    };
    const gate = approve('gate', { after: { list }, message: (...values) => `${spoilt(...values)}` });
    const each = step('each', {
      after: { list },
      if: spoilt,
      matrix: (...values) => [{ spoilt: spoilt(...values) }],
      run: ({ list }, ctx) => [list, ctx.input],
    });
    const sh = shell('sh', {
      after: { list, gate },
      env: (...values) => ({ SPOILT: `${spoilt(...values)}` }),
      run: 'true',
    });
    const last = step('last', {
      after: { list, each, sh },
      run: ({ list, each }, ctx) => [list, each.worker_results[0]?.output, ctx.input],
    });
    const { model } = workflow('w', { steps: [list, gate, each, sh, last] });
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: model, input: { names: ['n'] } });
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'approve' }, at);
    const files = { files: ['b.md', 'a.md'] };
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      output: { last: [files, [files, { names: ['n'] }], { names: ['n'] }] },
    });
  });

  it('is the payload as it was sent, also on the next attempt', async () => {
    const wait = step('wait', {
      retry: { attempts: 2, backoff: { initial: 0 } },
      run: async (_, ctx) => {
        const payload = await ctx.waitForSignal<{ list: string[] }>('go');
        payload.list.push('mine');
        if (ctx.attempt === 1) throw new Error('once more');
        return payload;
      },
    });
    const { model } = workflow('w', { steps: [wait] });
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: model });
    await store.post(runId, { kind: 'signal', name: 'go', payload: { list: [] } }, at);
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({
      output: { wait: { list: ['mine'] } },
    });
  });
});

describe('an observer', () => {
  it('cannot change the run that it observes', async () => {
    const reads = step('reads', { after: { list }, run: ({ list }) => list.files });
    const { engine, store } = testEngine({ observe: spoil });
    const { runId } = await engine.start({ workflow: workflow('w', { steps: [list, reads] }) });
    const outputs = eventsOf(await store.read(runId), 'step.completed').map(({ data }) => data.output);
    expect(outputs).toEqual([{ files: ['b.md', 'a.md'] }, ['b.md', 'a.md']]);
  });
});
