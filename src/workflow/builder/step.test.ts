import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type AnyStep, stepKey } from './handle.ts';
import { maybe, step, workflow } from './index.ts';
import { contextOf, scopeOf } from './test-support.ts';

const modelOf = (handle: AnyStep) => handle[stepKey].model;

function functionBody(handle: AnyStep) {
  const { body } = modelOf(handle);
  if (body.kind !== 'function') throw new Error(`expected a function, got ${body.kind}`);
  return body;
}

const validate = step('validate', { run: () => ({ total: 12 }) });
const fraud = step('fraud-check', { run: async () => 0.2 });

describe('a function step', () => {
  test('becomes a model whose needs are its dependencies', () => {
    const charge = step('charge', { after: { validate, risk: maybe(fraud) }, optional: true, run: () => 1 });
    const { fingerprint, ...model } = modelOf(charge);
    expect(fingerprint).toMatch(/^[0-9a-f]{16}$/);
    expect(model).toEqual({
      id: 'charge',
      needs: [
        { id: 'validate', tolerant: false },
        { id: 'fraud-check', tolerant: true },
      ],
      optional: true,
      timeout: {},
      body: { kind: 'function' },
    });
  });

  test('gets exactly the outputs of its dependencies under their names', () => {
    const charge = step('charge', {
      after: { order: validate, risk: maybe(fraud) },
      run: (outputs, ctx) => ({ outputs, input: ctx.input }),
    });
    const scope = scopeOf({ validate: { total: 3 }, 'fraud-check': undefined, stranger: 1 });
    expect(functionBody(charge).run(scope, contextOf('tea'))).toEqual({
      outputs: { order: { total: 3 }, risk: undefined },
      input: 'tea',
    });
  });

  test('gets an empty object if it has no dependencies', () => {
    const alone = step('alone', { run: outputs => outputs });
    expect(functionBody(alone).run(scopeOf({ stranger: 1 }), contextOf())).toEqual({});
  });

  test('may name a dependency twice, which must succeed unless both are `maybe`', () => {
    const twice = step('twice', {
      after: { a: maybe(validate), b: validate, c: maybe(fraud), d: maybe(fraud) },
      run: o => o,
    });
    expect(modelOf(twice).needs).toEqual([
      { id: 'validate', tolerant: false },
      { id: 'fraud-check', tolerant: true },
    ]);
    const outputs = functionBody(twice).run(scopeOf({ validate: 1, 'fraud-check': 2 }), contextOf());
    expect(outputs).toEqual({ a: 1, b: 1, c: 2, d: 2 });
  });

  test('passes outputs and input to its condition', () => {
    const charge = step('charge', {
      after: { validate },
      input: z.object({ limit: z.number() }),
      if: ({ validate }, input) => validate.total < input.limit,
      run: () => 1,
    });
    const { condition } = modelOf(charge);
    expect(condition?.(scopeOf({ validate: { total: 3 } }, { limit: 4 }))).toBe(true);
    expect(condition?.(scopeOf({ validate: { total: 5 } }, { limit: 4 }))).toBe(false);
  });

  test('rejects an asynchronous condition, which would always be true', () => {
    const charge = step('charge', {
      // @ts-expect-error: a condition is synchronous
      if: async () => false,
      run: () => 1,
    });
    expect(() => modelOf(charge).condition?.(scopeOf({}))).toThrowErrorMatchingInlineSnapshot(
      `[RepriseError: the condition of step "charge" returned a promise instead of true or false]`,
    );
  });
});

describe('an output schema', () => {
  const output = z.object({ total: z.string().transform(Number), tags: z.array(z.string()).default([]) });
  const parse = functionBody(step('total', { output, run: () => ({ total: '1' }) })).parseOutput;

  test('transforms the result of the function', () => {
    expect(parse?.({ total: '12' })).toEqual({ total: 12, tags: [] });
  });

  test('rejects an invalid output with every path in one line', () => {
    expect(() => parse?.({ total: 12, tags: ['a', 2] })).toThrowErrorMatchingInlineSnapshot(
      `[RepriseError: output.total: Invalid input: expected string, received number; output.tags[1]: Invalid input: expected string, received number]`,
    );
    expect(() => parse?.(undefined)).toThrowError(expect.objectContaining({ code: 'OUTPUT_INVALID' }));
  });

  test('rejects an output if it is asynchronous or if its transform throws', () => {
    const waiting = step('waiting', { output: z.string().refine(async () => true), run: () => 'a' });
    expect(() => functionBody(waiting).parseOutput?.('a')).toThrowError(
      expect.objectContaining({ code: 'OUTPUT_INVALID' }),
    );
    const broken = step('broken', { output: z.string().transform(text => JSON.parse(text)), run: () => '1' });
    expect(() => functionBody(broken).parseOutput?.('{')).toThrowError(/^output: .*JSON/);
  });
});

describe('a child workflow', () => {
  const ship = workflow('ship', {
    input: z.object({ id: z.string() }),
    steps: [validate],
    output: { sent: validate },
  });

  test('gets the input that `with` computes from outputs and input', () => {
    const shipping = step('shipping', {
      after: { risk: fraud },
      input: z.object({ customer: z.string() }),
      uses: ship,
      with: ({ risk }, { customer }) => ({ id: `${customer}-${risk}` }),
      retry: 2,
    });
    const { body, needs, retry } = modelOf(shipping);
    if (body.kind !== 'uses') throw new Error(`expected a child, got ${body.kind}`);
    expect(body.workflow).toBe(ship.model);
    expect(needs).toEqual([{ id: 'fraud-check', tolerant: false }]);
    expect(retry?.attempts).toBe(2);
    expect(body.input(scopeOf({ 'fraud-check': 0.5 }, { customer: 'ann' }))).toEqual({ id: 'ann-0.5' });
  });

  test('gets an empty object if it declares no input', () => {
    const { body } = modelOf(step('ping', { uses: workflow('ping', { steps: [validate] }) }));
    expect(body.kind === 'uses' && body.input(scopeOf({}))).toEqual({});
  });
});
