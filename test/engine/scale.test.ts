import { describe, expect, it } from 'vitest';
import type { StepModel, WorkflowModel } from '../../src/workflow/model.ts';
import { testEngine } from '../support/engine.ts';

const step = (id: string, needs: readonly string[], value: number): StepModel => ({
  id,
  needs: needs.map(need => ({ id: need, tolerant: false })),
  optional: false,
  timeout: {},
  fingerprint: id,
  body: { kind: 'function', run: () => value },
});

const workflow = (steps: readonly StepModel[]): WorkflowModel => ({
  name: 'large',
  input: { parse: () => ({}), fields: [] },
  steps,
  onFailure: 'fail-fast',
});

describe('the engine with a large workflow', () => {
  it('completes and replays a graph of 10,000 steps with several dependencies each', async () => {
    const steps = Array.from({ length: 10_000 }, (_, index) => {
      const needs = [index - 1, index - 7, index - 100].filter(need => need >= 0 && index % 50 !== 0);
      return step(
        `s${index}`,
        needs.map(need => `s${need}`),
        index,
      );
    });
    const model = workflow(steps);
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: model, maxConcurrentWorkers: 100 });
    expect(result.status).toBe('completed');
    expect(events).toHaveLength(20_002);
    await expect(engine.replay({ workflow: model, runId: result.runId })).resolves.toMatchObject({
      ended: true,
      result,
    });
  });

  it('completes a chain of 10,000 steps', async () => {
    const steps = Array.from({ length: 10_000 }, (_, index) =>
      step(`s${index}`, index === 0 ? [] : [`s${index - 1}`], index),
    );
    const { engine } = testEngine();
    await expect(engine.start({ workflow: workflow(steps) })).resolves.toMatchObject({
      status: 'completed',
      output: { s9999: 9999 },
    });
  });

  it('completes 20,000 parallel steps and one that depends on all of them, with few and with many slots', async () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => `s${index}`);
    const model = workflow([...ids.map((id, index) => step(id, [], index)), step('join', ids, -1)]);
    for (const maxConcurrentWorkers of [10, 100_000]) {
      const { engine, events } = testEngine();
      const result = await engine.start({ workflow: model, maxConcurrentWorkers });
      expect(result).toMatchObject({ status: 'completed', output: { join: -1 } });
      expect(events).toHaveLength(40_004);
    }
  });
});
