import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HistoryEvent, NewEvent } from '../../src/core/events.ts';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { foldHistory } from '../../src/engine/history/effective.ts';
import { buildGraph, type GraphNode } from '../../src/engine/state/graph.ts';
import { thisProcess } from '../../src/process/table.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { EventStore } from '../../src/store/port.ts';
import { approve, step, workflow } from '../../src/workflow/builder/index.ts';
import type { WorkflowModel } from '../../src/workflow/model.ts';
import { buildWorkflow, turnsFrom, turnTable, workflowSpec } from '../engine/random-workflow.ts';
import { at, endsOf } from '../engine/support.ts';
import { deferred, type TestEngine, testEngine } from '../support/engine.ts';
import { rounds } from '../support/rounds.ts';

const owner = { ...thisProcess(), incarnation: 'before' };

/** Creates a store with a run that was abandoned after these events. */
async function storeWith(events: readonly HistoryEvent[]): Promise<EventStore> {
  const store = memoryStore();
  const unplaced = events.map(({ seq: _seq, runId: _runId, at: _at, ...event }) => event as NewEvent);
  const lease = await store.createRun({
    runId: 'r',
    workflow: 'w',
    owner,
    expiresAt: at,
    at,
    events: unplaced,
  });
  await store.release('r', lease, 'running');
  return store;
}

/** Resumes the run until it ends, answering everything it waits for. */
async function resumeToEnd(
  { engine, store }: TestEngine,
  model: WorkflowModel,
  runId: string,
): Promise<readonly HistoryEvent[]> {
  for (;;) {
    const result = await engine.resume({ workflow: model, runId });
    if (result.status !== 'waiting') return store.read(runId);
    for (const waiting of result.waiting) await answer(store, runId, waiting);
  }
}

async function answer(
  store: EventStore,
  runId: string,
  waiting: { readonly step: string; readonly on: string },
): Promise<void> {
  if (waiting.on === 'approval')
    await store.post(runId, { kind: 'approval', step: waiting.step, choice: 'approve' }, at);
  if (waiting.on === 'signal') await store.post(runId, { kind: 'signal', name: 'go', payload: 'went' }, at);
}

/** Returns the steps that have ended in a history and cannot restart. */
function settledBy(model: WorkflowModel, events: readonly HistoryEvent[]): Set<string> {
  const state = foldHistory(buildGraph(model), events);
  const mayStartOver = ({ scope }: GraphNode): boolean => {
    const { parent } = scope;
    if (parent === undefined) return false;
    // The copies of a fan-out are retried one by one.
    const isRetried = parent.fanOut === undefined && parent.step.retry !== undefined;
    return (isRetried && !state.of(parent).ended) || mayStartOver(parent);
  };
  return new Set(
    state.nodes.filter(({ ended, node }) => ended && !mayStartOver(node)).map(({ node }) => node.unit),
  );
}

describe('a resume from every prefix of a history', () => {
  it('leads to the same outcome and reruns no step that had ended', async () => {
    const spec = workflowSpec({ depth: 1, maxSteps: 5, onFailure: fc.constant('continue') });
    await fc.assert(
      fc.asyncProperty(spec, turnTable, fc.integer({ min: 1, max: 3 }), async (spec, table, places) => {
        const ran = new Set<string>();
        const turns = turnsFrom(table);
        const model = buildWorkflow(spec, {
          work: (path, attempt) => {
            ran.add(path);
            return turns(path, attempt);
          },
        });
        const whole = testEngine();
        await whole.engine.start({ workflow: model, maxConcurrentWorkers: places });
        for (let length = 1; length < whole.events.length; length++) {
          const prefix = whole.events.slice(0, length);
          const store = await storeWith(prefix);
          ran.clear();
          await testEngine({ store }).engine.resume({
            workflow: model,
            runId: 'r',
            maxConcurrentWorkers: places,
          });
          const history = await store.read('r');
          expect(digestsOf(history).outcome, `after ${length} events`).toBe(digestsOf(whole.events).outcome);
          const again = [...settledBy(model, prefix)].filter(path => ran.has(path));
          expect(again, `after ${length} events`).toEqual([]);
        }
      }),
      { numRuns: rounds(8) },
    );
  });

  it('leads to the same outcome while steps sleep, retry, or wait for approvals and signals', async () => {
    const ran: string[] = [];
    const flaky = step('flaky', {
      retry: { attempts: 3, backoff: 1 },
      run: (_, ctx) => {
        if (ctx.attempt < 3) throw new Error('not yet');
        return ctx.attempt;
      },
    });
    const sleeps = step('sleeps', {
      run: async (_, ctx) => {
        await ctx.sleep(1);
        await ctx.sleep(2);
        return 'slept';
      },
    });
    const gate = approve('gate', { after: { flaky }, message: 'continue?' });
    const signalled = step('signalled', {
      after: { gate },
      run: (_, ctx) => ctx.waitForSignal<string>('go'),
    });
    const inner = workflow('inner', { steps: [sleeps, gate, flaky, signalled] });
    const early = step('early', { run: () => void ran.push('early') });
    const nested = step('nested', { after: { early }, uses: inner });
    const last = step('last', {
      after: { nested, signalled, sleeps },
      run: ({ signalled, sleeps }) => [signalled, sleeps],
    });
    const { model } = workflow('w', { steps: [early, flaky, sleeps, gate, signalled, nested, last] });

    const whole = testEngine();
    const { runId } = await whole.engine.start({ workflow: model });
    const complete = await resumeToEnd(whole, model, runId);
    expect(complete.at(-1)?.type).toBe('run.completed');
    for (let length = 1; length < complete.length; length++) {
      const prefix = complete.slice(0, length);
      ran.length = 0;
      const history = await resumeToEnd(testEngine({ store: await storeWith(prefix) }), model, 'r');
      expect(digestsOf(history).outcome, `after ${length} events`).toBe(digestsOf(complete).outcome);
      if (settledBy(model, prefix).has('early')) expect(ran).toEqual([]);
    }
  });

  it('lets an interrupted step finish even if another step fails before it gets its slot back', async () => {
    const hold = deferred();
    const long = step('long', { run: () => hold.promise });
    const fails = step('fails', {
      run: async (_, ctx) => {
        await ctx.sleep(1);
        throw new Error('no');
      },
    });
    const { model } = workflow('w', { steps: [fails, long], onFailure: 'finish-running' });
    const whole = testEngine();
    const running = whole.engine.start({ workflow: model, maxConcurrentWorkers: 1 });
    while (!whole.events.some(({ type }) => type === 'timer.fired'))
      await new Promise(resolve => setImmediate(resolve));
    const prefix = whole.events.slice();
    hold.resolve();
    await running;
    expect(endsOf(whole.events)).toEqual({ long: 'completed', fails: 'failed' });

    const store = await storeWith(prefix);
    const resumed = testEngine({ store });
    await resumed.engine.resume({ workflow: model, runId: 'r', maxConcurrentWorkers: 1 });
    expect(digestsOf(await store.read('r')).outcome).toBe(digestsOf(whole.events).outcome);
  });
});
