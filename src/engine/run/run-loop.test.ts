import { describe, expect, it } from 'vitest';
import { testEngine } from '../../../test/support/engine.ts';
import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import { systemClock } from '../../effects/world.ts';
import { step, workflow } from '../../workflow/builder/index.ts';
import { createEffects } from '../effects.ts';
import { buildGraph } from '../state/graph.ts';
import { RunState } from '../state/run-state.ts';
import { RunLoop } from './run-loop.ts';

const { model } = workflow('w', { steps: [step('a', { run: () => 1 })] });
const at = '2026-01-01T00:00:00.000Z';

describe('the run loop', () => {
  it('reports a bug instead of success if steps are unfinished but none is ready or running', async () => {
    const { environment, store } = testEngine();
    const { world } = environment;
    const runId = 'stuck';
    const started: NewEvent = {
      type: 'run.started',
      data: { format: 1, workflow: 'w', input: {}, steps: ['a'] },
    };
    const owner = { ...environment.self, incarnation: 'i' };
    const lease = await store.createRun({
      runId,
      workflow: 'w',
      owner,
      expiresAt: at,
      at,
      events: [started],
    });
    const state = new RunState(buildGraph(model));
    state.apply({ ...started, seq: 1, runId, at } as HistoryEvent);
    state.ready.clear();
    const effects = createEffects(environment, () => {});
    const loop = new RunLoop({
      environment,
      effects,
      observe: () => {},
      runId,
      lease,
      state,
      places: 1,
      budget: undefined,
      interrupt: undefined,
      suspend: undefined,
      wait: false,
    });
    await expect(world.open('engine', () => loop.run())).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'run stuck has unfinished steps, but none is ready or running',
      hint: expect.stringContaining('report it'),
    });
  });

  it('waits for cancelled timers to end before it returns', async () => {
    const turn = () => new Promise<void>(resolve => setImmediate(resolve));
    const clock = {
      ...systemClock,
      waitUntil: (epochMs: number, signal: AbortSignal) =>
        systemClock.waitUntil(epochMs, signal).catch(async (reason: unknown) => {
          const isTheTimeout = epochMs - systemClock.now() > 600_000;
          for (let turns = isTheTimeout ? 5 : 0; turns > 0; turns--) await turn();
          throw reason;
        }),
    };
    const quick = step('quick', { timeout: '1h', run: () => 'done' });
    const { engine } = testEngine({ clock });
    const result = await engine.start({ workflow: workflow('w', { steps: [quick] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { quick: 'done' } });
  });
});
