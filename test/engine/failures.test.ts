import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { RepriseError } from '../../src/core/errors.ts';
import { maybe, shell, step, workflow } from '../../src/workflow/builder/index.ts';
import { loadWorkflow } from '../../src/workflow/yaml/load.ts';
import { testEngine } from '../support/engine.ts';
import { endsOf, eventsOf } from './support.ts';

const never = (): string => 'never';

describe('a step that throws', () => {
  const hostile = () =>
    new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('do not look');
        },
      },
    );
  const oddError = () =>
    Object.defineProperties(new Error('odd'), {
      code: { value: '' },
      name: { value: 7 },
      message: { value: { not: 'a text' } },
      stack: { value: 12 },
    });
  const cases: [string, () => unknown, string][] = [
    ['a text', () => 'plain text', 'plain text'],
    ['undefined', () => undefined, 'threw undefined'],
    ['null', () => null, 'threw null'],
    ['a number', () => 42, 'threw 42'],
    ['a symbol', () => Symbol('sign'), 'threw Symbol(sign)'],
    ['a frozen object', () => Object.freeze({ why: 'because' }), 'threw {"why":"because"}'],
    ['a frozen error', () => Object.freeze(new Error('frozen')), 'frozen'],
    ['an object without a prototype', () => Object.create(null), 'threw {}'],
    ['an error without a message', () => new TypeError(), 'TypeError'],
  ];

  it.each(cases)('ends as failed when it throws %s', async (_, thrown, message) => {
    const bad = step('bad', {
      run: (): string => {
        throw thrown();
      },
    });
    const { engine, history } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [bad] }).model });
    expect(result).toMatchObject({ status: 'failed', step: 'bad', error: { code: 'STEP_FAILED', message } });
    expect(endsOf(await history(result.runId))).toEqual({ bad: 'failed' });
  });

  it.each([
    ['an object that cannot be inspected', hostile],
    ['an error with invalid fields', oddError],
    ['an error with an enormous cause', () => new Error('x', { cause: hostile() })],
  ])('leaves a readable history when it throws %s', async (_, thrown) => {
    const bad = step('bad', {
      run: (): string => {
        throw thrown();
      },
    });
    const { engine, history } = testEngine();
    const { model } = workflow('w', { steps: [bad] });
    const result = await engine.start({ workflow: model });
    expect(result.status).toBe('failed');
    expect(endsOf(await history(result.runId))).toEqual({ bad: 'failed' });
    await expect(engine.resume({ workflow: model, runId: result.runId })).resolves.toMatchObject({
      status: 'failed',
    });
  });

  it('keeps the code and hint of an error that has its own', async () => {
    const missing = step('missing', {
      run: (): string => {
        throw Object.assign(new Error('no file'), { code: 'ENOENT' });
      },
    });
    const hinted = step('hinted', {
      run: (): string => {
        throw new RepriseError('USAGE', 'wrong', { hint: 'do this' });
      },
    });
    const { engine, events } = testEngine();
    await engine.start({
      workflow: workflow('w', { steps: [missing, hinted], onFailure: 'continue' }).model,
    });
    const errors = eventsOf(events, 'step.failed').map(({ data }) => data.error);
    expect(errors).toMatchObject([
      { code: 'ENOENT', name: 'Error' },
      { code: 'USAGE', hint: 'do this' },
    ]);
  });
});

describe('the output of a step', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  it.each<[string, unknown, string]>([
    ['a function', () => {}, 'output is a function'],
    ['a date', { when: new Date(0) }, 'output.when is a Date'],
    ['NaN', [1, Number.NaN], 'output[1] is NaN'],
    ['a map', new Map(), 'output is a Map'],
    ['a cycle', circular, 'output.self is a reference to an object that contains it'],
    ['a bigint', 1n, 'output is a bigint'],
  ])('fails the step if it is %s', async (_, output, message) => {
    const bad = step('bad', { run: () => output });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [bad] }).model });
    expect(result).toMatchObject({ status: 'failed', step: 'bad', error: { code: 'OUTPUT_INVALID' } });
    expect(eventsOf(events, 'step.failed')[0]?.data.error.message).toContain(message);
  });

  it('fails a function step and a shell step if a schema refuses it or transforms it into something other than JSON', async () => {
    const output = z.object({ n: z.coerce.number() });
    const dated = z.object({ n: z.string() }).transform(() => ({ at: new Date(0) }));
    const nothing = z.object({ n: z.string() }).transform(() => undefined);
    const run = 'echo "n=x" >> "$REPRISE_OUTPUT"';
    const steps = [
      step('function_refused', { output, run: () => ({ n: 'x' }) }),
      shell('shell_refused', { output, run }),
      step('function_dated', { output: dated, run: () => ({ n: 'x' }) }),
      shell('shell_dated', { output: dated, run }),
      shell('shell_nothing', { output: nothing, run }),
    ];
    const { engine, history } = testEngine();
    const { runId } = await engine.start({ workflow: workflow('w', { steps, onFailure: 'continue' }).model });
    const errors = eventsOf(await history(runId), 'step.failed').map(({ step, data }) => [
      step,
      data.error.code,
    ]);
    expect(Object.fromEntries(errors)).toEqual({
      function_refused: 'OUTPUT_INVALID',
      shell_refused: 'OUTPUT_INVALID',
      function_dated: 'OUTPUT_INVALID',
      shell_dated: 'OUTPUT_INVALID',
    });
    expect(eventsOf(await history(runId), 'step.completed').map(({ data }) => data.output)).toEqual([null]);
  });

  it('is null if nothing is returned, and later steps receive a copy', async () => {
    const shared = { list: [1] };
    const none = step('none', { run: () => {} });
    const gives = step('gives', { run: () => shared });
    const takes = step('takes', {
      after: { none, gives },
      run: ({ none, gives }) => {
        shared.list.push(2);
        return { none, gives };
      },
    });
    const { engine } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [none, gives, takes] }).model });
    expect(result).toMatchObject({ output: { takes: { none: null, gives: { list: [1] } } } });
  });
});

describe('the result of a run', () => {
  it('contains the output of every step without dependants', async () => {
    const a = step('a', { run: () => 1 });
    const b = step('b', { after: { a }, run: () => 2 });
    const c = step('c', { after: { a }, run: () => 3 });
    const alone = step('alone', { run: () => 4 });
    const { engine } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [a, b, c, alone] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { b: 2, c: 3, alone: 4 } });
  });

  it('names the first cause, regardless of the order of the step names', async () => {
    const z1 = step('zulu', {
      run: (): string => {
        throw new Error('first');
      },
    });
    const a1 = step('alpha', {
      after: { zulu: maybe(z1) },
      run: (): string => {
        throw new Error('second');
      },
    });
    const { engine } = testEngine();
    const result = await engine.start({
      workflow: workflow('w', { steps: [a1, z1], onFailure: 'continue' }).model,
    });
    expect(result).toMatchObject({ status: 'failed', step: 'zulu', error: { message: 'first' } });
  });

  it('is a failure if the declared output cannot be evaluated', async () => {
    const off = step('off', { if: () => false, run: never });
    const { engine, history } = testEngine();
    const { model } = workflow('w', { steps: [off], output: { off } });
    const result = await engine.start({ workflow: model });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_FAILED' } });
    expect((await history(result.runId)).at(-1)?.type).toBe('run.failed');
  });

  it('is completed for a workflow without steps', async () => {
    const { engine } = testEngine();
    const { model } = workflow('one', { steps: [step('a', { run: () => 1 })] });
    await expect(engine.start({ workflow: { ...model, steps: [] } })).resolves.toMatchObject({
      status: 'completed',
      output: {},
    });
  });
});

describe('a condition', () => {
  const yaml = (text: string) => loadWorkflow({ file: '/w.yaml', text });

  it('skips a step and its dependants, and the run completes', async () => {
    const off = step('off', { if: () => false, run: never });
    const after = step('after', { after: { off }, run: never });
    const tolerant = step('tolerant', { after: { off: maybe(off) }, run: ({ off }) => off ?? 'nothing' });
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: workflow('w', { steps: [off, after, tolerant] }).model });
    expect(result).toMatchObject({ status: 'completed', output: { after: null, tolerant: 'nothing' } });
    expect(
      eventsOf(events, 'step.skipped').map(({ step, data }) => [step, data.reason, data.because]),
    ).toEqual([
      ['off', 'condition', undefined],
      ['after', 'dependency', 'off'],
    ]);
  });

  it('fails its step if it throws or returns no boolean', async () => {
    const throws = step('throws', {
      if: () => {
        throw new Error('cannot say');
      },
      run: never,
    });
    const promise = step('promise', { if: (async () => false) as unknown as () => boolean, run: never });
    const { engine, events } = testEngine();
    const { model } = workflow('w', { steps: [throws, promise], onFailure: 'continue' });
    await expect(engine.start({ workflow: model })).resolves.toMatchObject({
      status: 'failed',
      step: 'throws',
    });
    expect(eventsOf(events, 'step.failed').map(({ data }) => data.error.code)).toEqual([
      'EXPRESSION_FAILED',
      'EXPRESSION_FAILED',
    ]);
  });

  it('lets a step with always() or failure() run after a failure that stops everything else', async () => {
    const model = yaml(`
name: w
steps:
  - { id: bad, run: exit 3 }
  - { id: next, needs: bad, run: echo next }
  - { id: tidy, needs: next, if: always(), run: echo tidy }
  - { id: alarm, needs: bad, if: failure(), run: echo alarm }
  - { id: party, needs: bad, if: success(), run: echo party }
  - { id: later, needs: tidy, run: echo later }
`);
    const { engine, events } = testEngine();
    const result = await engine.start({ workflow: model });
    expect(result).toMatchObject({
      status: 'failed',
      step: 'bad',
      error: { code: 'EXIT_NONZERO', exitCode: 3 },
    });
    expect(endsOf(events)).toEqual({
      bad: 'failed',
      next: 'skipped',
      tidy: 'completed',
      alarm: 'completed',
      party: 'skipped',
      later: 'skipped',
    });
  });

  it('skips a step with failure() if nothing failed', async () => {
    const model = yaml(`
name: w
steps:
  - { id: good, run: echo good }
  - { id: alarm, needs: good, if: failure(), run: echo alarm }
`);
    const { engine, events } = testEngine();
    await expect(engine.start({ workflow: model })).resolves.toMatchObject({ status: 'completed' });
    expect(endsOf(events)).toEqual({ good: 'completed', alarm: 'skipped' });
  });
});
