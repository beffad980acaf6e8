import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import type { Schema } from './handle.ts';
import { inputContract } from './workflow.ts';

const contract = (schema?: Schema) => inputContract('fix', schema);
const schema = z.object({
  issue: z.string().describe('Issue to fix'),
  mode: z.enum(['fast', 'safe']).default('safe'),
  depth: z.number().int().optional(),
  dry: z.boolean().default(false),
  only: z.string().nullish(),
  kind: z.literal('bug'),
  since: z.coerce
    .date()
    .transform(date => date.getTime())
    .optional(),
  files: z.array(z.string()).default(['a']),
});

describe('an input contract from a schema', () => {
  test('fills in defaults and applies transforms', () => {
    expect(contract(schema).parse({ issue: '7', kind: 'bug', since: '1970-01-01' })).toEqual({
      issue: '7',
      kind: 'bug',
      mode: 'safe',
      dry: false,
      since: 0,
      files: ['a'],
    });
  });

  test('lists every issue with its path', () => {
    const parse = () => contract(schema).parse({ issue: 7, kind: 'bug', mode: 'slow', files: ['a', 2] });
    expect(parse).toThrowErrorMatchingInlineSnapshot(`
      [RepriseError: invalid input for workflow "fix":
        input.issue: Invalid input: expected string, received number
        input.mode: Invalid option: expected one of "fast"|"safe"
        input.files[1]: Invalid input: expected string, received number]
    `);
    expect(parse).toThrowError(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });

  test('treats a missing input as an empty object', () => {
    expect(contract(z.object({ a: z.number().default(1) })).parse(undefined)).toEqual({ a: 1 });
  });

  test('rejects an input whose parsed value cannot be stored', () => {
    const parse = () => contract(z.object({ at: z.coerce.date() })).parse({ at: 0 });
    expect(parse).toThrowErrorMatchingInlineSnapshot(`
      [RepriseError: invalid input for workflow "fix":
        input.at is a Date, which cannot be stored as JSON]
    `);
    expect(parse).toThrowError(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });

  test('describes the fields of an object', () => {
    expect(contract(schema).fields).toEqual([
      { name: 'issue', type: 'string', required: true, description: 'Issue to fix' },
      { name: 'mode', type: 'choice', options: ['fast', 'safe'], required: false, default: 'safe' },
      { name: 'depth', type: 'number', required: false },
      { name: 'dry', type: 'boolean', required: false, default: false },
      { name: 'only', type: 'string', required: false },
      { name: 'kind', type: 'choice', options: ['bug'], required: true },
      { name: 'since', type: 'json', required: false },
      { name: 'files', type: 'json', required: false, default: ['a'] },
    ]);
  });

  test('lists at least the names of fields if the schema cannot describe itself', () => {
    const small = mini.object({
      a: mini.string(),
      b: mini.optional(mini.number()),
      c: mini._default(mini.number(), 1),
    });
    expect(contract(small).fields).toEqual([
      { name: 'a', type: 'json', required: true },
      { name: 'b', type: 'json', required: false },
      { name: 'c', type: 'json', required: false },
    ]);
    expect(contract(small).parse({ a: 'x' })).toEqual({ a: 'x', c: 1 });
    expect(contract(z.string()).fields).toEqual([]);
  });
});

describe('an input contract without a schema', () => {
  test('accepts any object and treats a missing input as an empty one', () => {
    expect(contract().parse({ a: [1] })).toEqual({ a: [1] });
    expect(contract().parse(undefined)).toEqual({});
    expect(contract().fields).toEqual([]);
  });

  test.each([[null], ['text'], [[1]], [{ at: new Date(0) }]])('rejects %j', raw => {
    expect(() => contract().parse(raw)).toThrowError(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });
});
