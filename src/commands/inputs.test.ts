import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { LoadedDefinition } from '../project/definitions.ts';
import { step, workflow } from '../workflow/builder/index.ts';
import { loadWorkflow } from '../workflow/yaml/load.ts';
import { type InputOptions, readInput } from './inputs.ts';
import { temporaryProject, testIo } from './test-support.ts';

const yaml = (inputs: string): LoadedDefinition => ({
  kind: 'yaml',
  source: 'w.yaml',
  model: loadWorkflow({ file: '/w.yaml', text: `inputs: ${inputs}\nsteps:\n  - { id: a, run: "true" }\n` }),
});
const typed = (input: z.ZodType<object>): LoadedDefinition => ({
  kind: 'module',
  source: 'w.mjs',
  model: workflow('w', { steps: [step('a', { run: () => 1 })], input }).model,
});
const read = (definition: LoadedDefinition, options: InputOptions) =>
  readInput(options, { definition, io: testIo(temporaryProject()) });

describe('the inputs of a YAML workflow', () => {
  it('are converted to their declared types and stay text if they do not convert', async () => {
    const declared = yaml('{ s: {}, n: { type: number }, b: { type: boolean }, j: { type: json } }');
    expect(await read(declared, { input: ['s=1', 'n=-1.5e3', 'b=false', 'j=[1]'] })).toEqual({
      s: '1',
      n: -1500,
      b: false,
      j: [1],
    });
    expect(await read(declared, { input: ['n=', 'b=yes'] })).toEqual({ n: '', b: 'yes' });
    expect(await read(declared, { input: ['j=null', 's=a=b', 'other=1'] })).toEqual({
      j: null,
      s: 'a=b',
      other: '1',
    });
  });

  it('refuse malformed JSON for a json field and show how to pass text', async () => {
    const declared = yaml('{ j: { type: json } }');
    await expect(read(declared, { input: ['j={bad'] })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: 'input `j` must be JSON, not "{bad"',
      hint: `quote text as JSON: --input j='"text"'`,
    });
    expect(await read(declared, { input: ['j="text"'] })).toEqual({ j: 'text' });
  });

  it('keep a name that is special in JavaScript', async () => {
    const input = await read(yaml('{ s: {} }'), { input: ['__proto__=x'] });
    expect(Object.keys(input)).toEqual(['__proto__']);
  });
});

describe('the inputs of a workflow in code', () => {
  it('are text where the schema accepts text, and JSON otherwise', async () => {
    const schema = z.object({
      list: z.array(z.number()),
      either: z.union([z.string(), z.number()]),
      flag: z.literal(true).or(z.date()),
      any: z.unknown(),
    });
    const input = await read(typed(schema), {
      input: ['list=[1,2]', 'either=5', 'flag=true', 'any={"a":1}'],
    });
    expect(input).toEqual({ list: [1, 2], either: '5', flag: true, any: '{"a":1}' });
  });

  it('stay as typed if the schema accepts neither, so that the error shows them', async () => {
    const schema = z.object({ list: z.array(z.number()) });
    expect(await read(typed(schema), { input: ['list={"a":1}'] })).toEqual({ list: '{"a":1}' });
  });
});
