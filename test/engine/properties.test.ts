import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HistoryEvent } from '../../src/core/events.ts';
import { canonicalOrder, digestsOf } from '../../src/engine/history/digest.ts';
import { findReadySteps } from '../../src/engine/run/planner.ts';
import { withoutVolatile } from '../../src/engine/run/result.ts';
import { unitOfEvent } from '../../src/engine/state/graph.ts';
import type { FailurePolicy, WorkflowModel } from '../../src/workflow/model.ts';
import { testEngine } from '../support/engine.ts';
import { expectSoundHistory } from './history-rules.ts';
import { type Behaviour, buildWorkflow, turnsFrom, turnTable, workflowSpec } from './random-workflow.ts';
import { countingStore } from './support.ts';

const anyPolicy = fc.constantFrom<FailurePolicy>('fail-fast', 'finish-running', 'continue');
const places = fc.integer({ min: 1, max: 5 });
const anyWorkflow = workflowSpec({ depth: 2, maxSteps: 7, onFailure: anyPolicy });
/** With the other policies, timing decides which steps still end before a failure, by design. */
const steadyWorkflow = workflowSpec({ depth: 2, maxSteps: 7, onFailure: fc.constant('continue') });

async function run(workflow: WorkflowModel, maxConcurrentWorkers: number) {
  const batches: (readonly HistoryEvent[])[] = [];
  const { engine, store, events } = testEngine({
    observe: observation => {
      if (observation.kind === 'events') batches.push(observation.events);
    },
  });
  const result = await engine.start({ workflow, maxConcurrentWorkers });
  return { engine, store, result, events, batches };
}

/** Wraps work to record the peak concurrency. */
function counted(work: Behaviour['work']) {
  const seen = { now: 0, peak: 0 };
  const counting: Behaviour['work'] = async (path, attempt) => {
    seen.peak = Math.max(seen.peak, ++seen.now);
    await work(path, attempt);
    seen.now--;
  };
  return { seen, work: counting };
}

describe('any workflow', () => {
  it('leaves a sound history, which the store returns as it was observed', async () => {
    await fc.assert(
      fc.asyncProperty(anyWorkflow, places, turnTable, async (spec, limit, table) => {
        const workflow = buildWorkflow(spec, { work: turnsFrom(table) });
        const { events, store, result } = await run(workflow, limit);
        expectSoundHistory(workflow, events);
        expect(await store.read(result.runId)).toEqual(events);
      }),
      { numRuns: 60 },
    );
  });

  it('never runs more steps in parallel than allowed', async () => {
    await fc.assert(
      fc.asyncProperty(anyWorkflow, places, turnTable, async (spec, limit, table) => {
        const { seen, work } = counted(turnsFrom(table));
        await run(buildWorkflow(spec, { work }), limit);
        expect(seen.peak).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 60 },
    );
  });

  it('leads to the same digests regardless of the timing and the limit', async () => {
    await fc.assert(
      fc.asyncProperty(
        steadyWorkflow,
        fc.tuple(places, places),
        fc.tuple(turnTable, turnTable),
        async (spec, limits, tables) => {
          const first = await run(buildWorkflow(spec, { work: turnsFrom(tables[0]) }), limits[0]);
          const second = await run(buildWorkflow(spec, { work: turnsFrom(tables[1]) }), limits[1]);
          expect(digestsOf(second.events)).toEqual(digestsOf(first.events));
          expect(second.result.status).toBe(first.result.status);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is planned from its history alone: the steps that a prefix makes ready are the ones that started', async () => {
    await fc.assert(
      fc.asyncProperty(steadyWorkflow, places, turnTable, async (spec, limit, table) => {
        const workflow = buildWorkflow(spec, { work: turnsFrom(table) });
        const { batches } = await run(workflow, limit);
        const [started = [], ...turns] = batches;
        let before = [...started];
        for (const batch of turns) {
          const planned = batch.findIndex(({ type }) => type === 'step.started' || type === 'step.skipped');
          for (let cut = planned === -1 ? batch.length : planned; cut <= batch.length; cut++) {
            // A step that fans out starts and expands in one decision.
            if (batch[cut]?.type === 'fanout.expanded') continue;
            const ready = findReadySteps(workflow, [...before, ...batch.slice(0, cut)], { places: limit });
            expect(ready).toEqual(startsOfFunctions(batch.slice(cut)));
          }
          before = [...before, ...batch];
        }
      }),
      { numRuns: 60 },
    );
  });

  it('replays without running or writing anything and gives the same result', async () => {
    await fc.assert(
      fc.asyncProperty(anyWorkflow, places, turnTable, async (spec, limit, table) => {
        const { seen, work } = counted(turnsFrom(table));
        const workflow = buildWorkflow(spec, { work });
        const { store, result, events } = await run(workflow, limit);
        seen.peak = 0;
        const watched = countingStore(store);
        const replayed = await testEngine({ store: watched.store }).engine.replay({
          workflow,
          runId: result.runId,
        });
        expect(replayed).toEqual({ result, history: events, ended: true });
        expect(watched.writes).toEqual([]);
        expect(seen.peak).toBe(0);
      }),
      { numRuns: 60 },
    );
  });
});

/**
 * Returns the starts of steps that do work themselves: a child workflow has an input, and a fan-out expands
 * immediately.
 */
const startsOfFunctions = (events: readonly HistoryEvent[]): string[] =>
  events.flatMap((event, index) => {
    const isFanOut = events[index + 1]?.type === 'fanout.expanded';
    const unit = unitOfEvent(event);
    return event.type === 'step.started' && event.data.input === undefined && unit && !isFanOut ? [unit] : [];
  });

describe('twenty runs of one workflow', () => {
  it('differ only in times and run ids, however long their steps take', async () => {
    const rich = fc.sample(workflowSpec({ depth: 2, maxSteps: 12, onFailure: fc.constant('continue') }), {
      numRuns: 3,
      seed: 11,
    });
    for (const spec of rich) {
      const histories = new Set<string>();
      for (let seed = 0; seed < 20; seed++) {
        const [table = [0]] = fc.sample(turnTable, { numRuns: 1, seed });
        const { events } = await run(buildWorkflow(spec, { work: turnsFrom(table) }), 1 + (seed % 4));
        histories.add(
          JSON.stringify(
            canonicalOrder(events).map(({ at: _at, runId: _runId, ...rest }) =>
              withoutVolatile(rest as never),
            ),
          ),
        );
      }
      expect(histories.size).toBe(1);
    }
  });
});
