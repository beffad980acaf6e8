import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import type { Json } from '../../core/json.ts';
import type { StepContext } from '../model.ts';
import {
  type AgentText,
  agent,
  approve,
  type Landed,
  land,
  maybe,
  type OutputOf,
  type StepHandle,
  shell,
  step,
  type WorkerResults,
  type Workflow,
  type WorkflowInput,
  type WorkflowOutput,
  workflow,
} from './index.ts';

// The compiler checks this file: the line after each `@ts-expect-error` must not compile.

const validate = step('validate', { run: () => ({ valid: true, total: 12 }) });
const fraud = step('fraud', { run: async () => ({ score: 0.2 }) });
const order = z.object({ id: z.string(), rush: z.boolean().default(false) });

describe('a function step', () => {
  test('reads the outputs of its dependencies under their names, without annotations', () => {
    const charge = step('charge', {
      after: { validate, fraud },
      run: ({ validate, fraud }, ctx) => {
        expectTypeOf(validate).toEqualTypeOf<{ valid: boolean; total: number }>();
        expectTypeOf(fraud).toEqualTypeOf<{ score: number }>();
        expectTypeOf(ctx).toEqualTypeOf<StepContext<unknown>>();
        return { charged: validate.total, risky: fraud.score > 0.5 };
      },
    });
    expectTypeOf(charge).toEqualTypeOf<StepHandle<{ charged: number; risky: boolean }, unknown>>();
  });

  test('has inferred types if it is asynchronous, and for any order of the options', () => {
    const charge = step('charge', {
      run: async ({ ok }, { attempt }) => ({ charged: ok.total * attempt }),
      if: ({ ok }) => ok.valid,
      after: { ok: validate },
      retry: { attempts: 3, on: error => error.code === 'TIMEOUT' },
    });
    expectTypeOf<OutputOf<typeof charge>>().toEqualTypeOf<{ charged: number }>();
  });

  test('cannot read undeclared dependencies', () => {
    // @ts-expect-error: fraud is not in `after`
    step('charge', { after: { validate }, run: ({ validate, fraud }) => [validate, fraud] });
    // @ts-expect-error: there are no dependencies
    step('charge', { run: outputs => outputs.validate });
    // @ts-expect-error: the same applies to conditions
    step('charge', { after: { validate }, if: ({ fraud }) => fraud.score < 1, run: () => 1 });
    // @ts-expect-error: a dependency is a step, not its name
    step('charge', { after: { validate: 'validate' }, run: () => 1 });
  });

  test('reads an output that may be undefined only through maybe()', () => {
    const optional = step('optional', { optional: true, if: () => true, run: () => 'text' });
    step('report', {
      after: { optional, perhaps: maybe(optional) },
      run: outputs => {
        expectTypeOf(outputs).toEqualTypeOf<{
          readonly optional: string;
          readonly perhaps: string | undefined;
        }>();
        // @ts-expect-error: it may be undefined
        return outputs.perhaps.length;
      },
    });
  });

  test('reads null if a step returned undefined, as it is stored', () => {
    const quiet = step('quiet', { run: async () => {} });
    const sometimes = step('sometimes', { run: () => [1].at(0) });
    expectTypeOf<OutputOf<typeof quiet>>().toEqualTypeOf<null>();
    expectTypeOf<OutputOf<typeof sometimes>>().toEqualTypeOf<number | null>();
  });
});

describe('an output schema', () => {
  const amount = z.object({ amount: z.string().transform(Number), unit: z.enum(['EUR', 'USD']) });

  test('types the result of `run` before parsing, and the value that later steps read after it', () => {
    const price = step('price', { output: amount, run: () => ({ amount: '12', unit: 'EUR' }) });
    const later = step('later', { output: amount, run: async () => ({ amount: '12', unit: 'EUR' }) });
    const mapped = step('mapped', {
      after: { price },
      output: amount,
      run: async ({ price }) => ({ amount: String(price.amount), unit: price.unit }),
    });
    type Price = { amount: number; unit: 'EUR' | 'USD' };
    expectTypeOf<OutputOf<typeof price>>().toEqualTypeOf<Price>();
    expectTypeOf<OutputOf<typeof later>>().toEqualTypeOf<Price>();
    expectTypeOf<OutputOf<typeof mapped>>().toEqualTypeOf<Price>();
  });

  test('rejects functions that return a different type', () => {
    // @ts-expect-error: amount is a number
    step('price', { output: amount, run: () => ({ amount: 12, unit: 'EUR' }) });
    // @ts-expect-error: the same, asynchronously and with dependencies
    step('price', {
      after: { validate },
      output: amount,
      run: async ({ validate }) => ({ amount: validate.total, unit: 'EUR' }),
    });
    // @ts-expect-error: no such unit
    step('price', { output: amount, run: () => ({ amount: '12', unit: 'GBP' }) });
  });

  test('accepts constants, variables and values of every shape', () => {
    const names: string[] = ['a'];
    const lists = z.object({ names: z.array(z.string()), pair: z.tuple([z.number(), z.enum(['a', 'b'])]) });
    step('constant', { output: lists, run: () => ({ names: ['a'], pair: [1, 'a'] }) });
    step('variable', { output: lists, run: async () => ({ names, pair: [names.length, 'b'] }) });
    const event = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('text'), text: z.string() }),
      z.object({ kind: z.literal('count'), count: z.number() }),
    ]);
    step('union', { output: event, run: () => ({ kind: 'count', count: 1 }) });
    step('either', {
      output: event,
      run: (_, ctx) => (ctx.attempt > 1 ? { kind: 'count', count: 1 } : { kind: 'text', text: '' }),
    });
    step('date', { output: z.date().transform(date => date.toISOString()), run: () => new Date(0) });
    step('record', { output: z.record(z.string(), z.number()), run: () => ({ a: 1 }) });
    step('branded', { output: z.string().brand('id'), run: () => 'a' });
    step('unknown', { output: z.unknown(), run: () => undefined });
    step('json', { output: z.json(), run: () => ({ a: [1, null, { b: 'c' }] }) });
    step('literal', { output: z.literal('done'), run: async () => 'done' });
    // @ts-expect-error: the kind has other fields
    step('union', { output: event, run: () => ({ kind: 'count', text: '' }) });
  });

  test('may come from zod/mini', () => {
    const small = step('small', { output: mini.object({ a: mini.number() }), run: () => ({ a: 1 }) });
    expectTypeOf<OutputOf<typeof small>>().toEqualTypeOf<{ a: number }>();
  });
});

describe('the input of a run', () => {
  test('is typed in a step by its own schema', () => {
    const start = step('start', { input: order, run: (_, ctx) => ctx.input.rush });
    expectTypeOf(start).toEqualTypeOf<StepHandle<boolean, { id: string; rush: boolean }>>();
    step('ship', {
      input: order,
      if: (_, input) => input.rush,
      // @ts-expect-error: the schema has no such field
      run: (_, ctx) => ctx.input.customer,
    });
    // @ts-expect-error: it is unknown without a schema
    step('ship', { run: (_, ctx) => ctx.input.id });
  });

  test('must match every step of the workflow', () => {
    const start = step('start', { input: order, run: (_, ctx) => ctx.input.id });
    const free = step('free', { run: () => 1 });
    workflow('same', { input: order, steps: [start, free] });
    workflow('wider', { input: order.extend({ note: z.string() }), steps: [start] });
    // @ts-expect-error: id is a number
    workflow('other', { input: order.extend({ id: z.number() }), steps: [start] });
    // @ts-expect-error: rush is missing
    workflow('less', { input: z.object({ id: z.string() }), steps: [free, start] });
    // @ts-expect-error: the workflow declares no input
    workflow('none', { steps: [start] });
  });

  test('has its unparsed type for callers', () => {
    const pay = workflow('pay', { input: order, steps: [validate] });
    expectTypeOf<WorkflowInput<typeof pay>>().toEqualTypeOf<{ id: string; rush?: boolean | undefined }>();
    const plain = workflow('plain', { steps: [validate] });
    expectTypeOf<WorkflowInput<typeof plain>>().toEqualTypeOf<undefined>();
  });
});

describe('the output of a workflow', () => {
  test('has the outputs of the named steps', () => {
    const pay = workflow('pay', {
      steps: [validate, fraud],
      output: { valid: validate, risk: maybe(fraud) },
    });
    type Output = {
      readonly valid: { valid: boolean; total: number };
      readonly risk: { score: number } | undefined;
    };
    expectTypeOf<WorkflowOutput<typeof pay>>().toEqualTypeOf<Output>();
    expectTypeOf(pay).toEqualTypeOf<Workflow<undefined, Output>>();
  });

  test('is a JSON object if no steps are named', () => {
    const pay = workflow('pay', { steps: [validate] });
    expectTypeOf<WorkflowOutput<typeof pay>>().toEqualTypeOf<Readonly<Record<string, Json>>>();
  });
});

describe('a child workflow', () => {
  const ship = workflow('ship', { input: order, steps: [validate], output: { sent: validate } });
  const ping = workflow('ping', { steps: [validate] });

  test('takes its input from `with` and returns its own output', () => {
    const shipping = step('shipping', {
      after: { validate },
      input: z.object({ customer: z.string() }),
      uses: ship,
      with: ({ validate }, input) => ({ id: `${input.customer}-${validate.total}` }),
    });
    type Sent = { readonly sent: { valid: boolean; total: number } };
    expectTypeOf(shipping).toEqualTypeOf<StepHandle<Sent, { customer: string }>>();
    step('ping', { uses: ping, retry: 2, timeout: '5m' });
  });

  test('requires `with` if and only if it declares an input', () => {
    // @ts-expect-error: `with` is missing
    step('shipping', { uses: ship });
    // @ts-expect-error: it takes no input
    step('ping', { uses: ping, with: () => ({ id: '1' }) });
  });

  test('rejects an input of a different type', () => {
    // @ts-expect-error: id is a number
    step('shipping', { uses: ship, with: () => ({ id: 1 }) });
    // @ts-expect-error: id is missing
    step('shipping', { after: { validate }, uses: ship, with: ({ validate }) => ({ rush: validate.valid }) });
    // @ts-expect-error: fraud is not in `after`
    step('shipping', { after: { validate }, uses: ship, with: ({ fraud }) => ({ id: fraud }) });
    // @ts-expect-error: a step is a function or a child workflow, not both
    step('shipping', { uses: ping, run: () => 1 });
  });
});

describe('an approval', () => {
  test('returns one of its choices, but never reject', () => {
    const gate = approve('gate', {
      after: { validate },
      message: ({ validate }) => `Pay ${validate.total}?`,
    });
    expectTypeOf<OutputOf<typeof gate>['choice']>().toEqualTypeOf<'approve'>();
    const size = approve('size', { message: 'Which?', choices: ['small', 'large', 'reject'], timeout: '2d' });
    expectTypeOf<OutputOf<typeof size>['choice']>().toEqualTypeOf<'small' | 'large'>();
    expectTypeOf<OutputOf<typeof size>['comment']>().toEqualTypeOf<string | undefined>();
    step('cut', {
      after: { size },
      // @ts-expect-error: there is no such choice
      run: ({ size }) => size.choice === 'medium',
    });
  });
});

describe('a shell step', () => {
  test('reads its dependencies into the environment only', () => {
    const plain = shell('plain', {
      after: { validate },
      run: 'echo "$TOTAL"',
      env: ({ validate }) => ({ TOTAL: validate.total }),
    });
    expectTypeOf<OutputOf<typeof plain>>().toEqualTypeOf<Readonly<Record<string, Json>>>();
    const parsed = shell('parsed', { run: 'make', output: z.object({ size: z.coerce.number() }) });
    expectTypeOf<OutputOf<typeof parsed>>().toEqualTypeOf<{ size: number }>();
    // @ts-expect-error: a script is fixed
    shell('unsafe', { after: { validate }, run: ({ validate }) => `echo ${validate.total}` });
    // @ts-expect-error: fraud is not in `after`
    shell('undeclared', { after: { validate }, run: 'echo', env: ({ fraud }) => ({ SCORE: fraud.score }) });
    // @ts-expect-error: the value of a variable cannot be an object
    shell('object', { after: { validate }, run: 'echo', env: ({ validate }) => ({ ALL: validate }) });
  });
});

describe('the output of a step with copies', () => {
  const plan = agent('plan', {
    agent: 'planner',
    prompt: 'p',
    output: z.object({ files: z.array(z.string()) }),
  });

  test('has the same shape for agents, scripts, functions and child workflows', () => {
    const child = workflow('child', { steps: [validate], output: { validate } });
    const fix = agent('fix', { agent: 'coder', prompt: 'p', concurrency: 3 });
    const judged = agent('judged', {
      after: { plan },
      agent: 'coder',
      prompt: 'p',
      matrix: [{ n: 1 }],
      output: order,
    });
    const lint = shell('lint', { run: 'ls', concurrency: 2, output: z.object({ n: z.number() }) });
    const count = step('count', { concurrency: 2, run: () => 5 });
    const checked = step('checked', { matrix: [{ n: 1 }], output: z.number(), run: () => 5 });
    const sub = step('sub', { uses: child, concurrency: 2 });
    expectTypeOf<OutputOf<typeof fix>>().toEqualTypeOf<WorkerResults<AgentText>>();
    expectTypeOf<OutputOf<typeof judged>>().toEqualTypeOf<WorkerResults<{ id: string; rush: boolean }>>();
    expectTypeOf<OutputOf<typeof lint>>().toEqualTypeOf<WorkerResults<{ n: number }>>();
    expectTypeOf<OutputOf<typeof count>>().toEqualTypeOf<WorkerResults<number>>();
    expectTypeOf<OutputOf<typeof checked>>().toEqualTypeOf<WorkerResults<number>>();
    expectTypeOf<OutputOf<typeof sub>>().toEqualTypeOf<
      WorkerResults<{ readonly validate: { valid: boolean; total: number } }>
    >();
    step('read', {
      after: { judged },
      run: ({ judged }) => {
        expectTypeOf(judged.worker_results[0]?.output?.id).toEqualTypeOf<string | undefined>();
        return judged.success_count;
      },
    });
  });

  test('is an ordinary output without copies', () => {
    const plain = agent('plain', { agent: 'coder', prompt: 'p' });
    const one = agent('one', { agent: 'coder', prompt: 'p', concurrency: 1, output: order });
    const copies: number = [3].length;
    const some = step('some', { concurrency: copies, run: () => 'text' });
    expectTypeOf<OutputOf<typeof plain>>().toEqualTypeOf<AgentText>();
    expectTypeOf<OutputOf<typeof one>>().toEqualTypeOf<{ id: string; rush: boolean }>();
    expectTypeOf<OutputOf<typeof some>>().toEqualTypeOf<string | WorkerResults<string>>();
  });

  test('comes from copies that read typed items of a matrix', () => {
    agent('docs', {
      after: { plan },
      matrix: ({ plan }) => plan.files.map(file => ({ file, deep: { n: 1 } })),
      agent: 'coder',
      prompt: (outputs, _, item) => {
        expectTypeOf(outputs).toEqualTypeOf<{ readonly plan: { files: string[] } }>();
        expectTypeOf(item).toEqualTypeOf<{ file: string; deep: { n: number } }>();
        return item.file;
      },
    });
    step('function', {
      matrix: [{ file: 'a' }],
      run: (_, ctx) => {
        expectTypeOf(ctx.matrix.file).toEqualTypeOf<string>();
        expectTypeOf(ctx.worker).toEqualTypeOf<number>();
        return ctx.attempt;
      },
    });
    step('ordinary', {
      run: (_, ctx) => {
        expectTypeOf(ctx.worker).toEqualTypeOf<number | undefined>();
        return 1;
      },
    });
    // @ts-expect-error: an item is an object
    step('texts', { matrix: ['a'], run: () => 1 });
    // @ts-expect-error: the items have no such field
    shell('script', { matrix: [{ file: 'a' }], run: 'ls', env: (_, __, { name }) => ({ NAME: name }) });
    // @ts-expect-error: an agent requires a prompt
    agent('silent', { agent: 'coder' });
  });
});

describe('a landing', () => {
  const fix = agent('fix', { agent: 'coder', prompt: 'p' });

  test('names one of its dependencies as its source', () => {
    const landed = land('land', { after: { fix, validate }, from: 'fix', onto: 'main' });
    expectTypeOf<OutputOf<typeof landed>>().toEqualTypeOf<Landed>();
    land('computed', { after: { validate }, onto: ({ validate }) => `release/${validate.total}` });
    // @ts-expect-error: there is no such name in `after`
    land('land', { after: { fix }, from: 'fxi', onto: 'main' });
    // @ts-expect-error: `onto` is required
    land('land', { after: { fix } });
  });
});
