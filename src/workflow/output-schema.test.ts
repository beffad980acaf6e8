import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../core/index.ts';
import { compileOutputSchema } from './output-schema.ts';

/** The output with its defaults, or the lines of the error. */
function checked(schema: JsonObject, output: unknown): unknown {
  const compiled = compileOutputSchema(schema);
  if (compiled.kind === 'invalid') return compiled;
  try {
    return compiled.parse(output);
  } catch (error) {
    return error instanceof Error ? error.message.split('\n').slice(1) : error;
  }
}

const name = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };

describe('an output schema', () => {
  it.each<[string, JsonObject, Json, readonly string[]]>([
    [
      'without a type',
      { properties: { files: { type: 'array' } }, required: ['files', 'plan'] },
      { files: 7 },
      ['output.plan: is required', 'output.files: must be an array, not a number'],
    ],
    [
      'with `anyOf` beside `properties`',
      { properties: { a: { type: 'string' } }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1 },
      ['output.a: must be a string, not a number'],
    ],
    [
      'with items',
      { type: 'array', items: name },
      [{ name: 'a' }, { name: null }, {}],
      ['output[1].name: must be a string, not null', 'output[2].name: is required'],
    ],
    ['with types', { type: ['string', 'null'] }, [1], ['output: must be a string or null, not an array']],
    ['with values', { enum: ['a', 1] }, 'b', ['output: must be one of "a", 1, not "b"']],
    ['with a constant', { const: { a: 1 } }, 2, ['output: must be {"a":1}, not 2']],
    ['with a minimum', { properties: { n: { minimum: 3 } } }, { n: 1 }, ['output.n: must be >= 3']],
    ['with a pattern', { pattern: '^a+$' }, 'b', ['output: must match pattern "^a+$"']],
    ['with a format', { format: 'email' }, 'b', ['output: must match format "email"']],
    [
      'that is closed',
      { ...name, additionalProperties: false },
      { name: '', x: 1 },
      ['output.x: is not allowed'],
    ],
    [
      'with an unusual name',
      { properties: { 'a/b~c': { type: 'null' }, 0: { type: 'null' } } },
      { 'a/b~c': 1, 0: 1 },
      ['output.0: must be null, not a number', 'output.a/b~c: must be null, not a number'],
    ],
    ['with a property of every object', { required: ['toString'] }, {}, ['output.toString: is required']],
    [
      'with two patterns',
      { properties: { a: { pattern: 'x' }, b: { pattern: 'y' } } },
      { a: 'y', b: 'y' },
      ['output.a: must match pattern "x"'],
    ],
  ])('%s names the value and what is expected', (_, schema, output, issues) => {
    expect(checked(schema, output)).toEqual(issues);
  });

  it.each<[string, JsonObject, Json]>([
    ['multiples of a decimal fraction', { multipleOf: 0.1 }, 0.3],
    ['prefixItems', { prefixItems: [{ type: 'string' }], items: false }, ['a']],
    [
      'the tuples of draft-07',
      { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'null' }] },
      [null],
    ],
    ['2019-09', { $schema: 'https://json-schema.org/draft/2019-09/schema', type: 'null' }, null],
    [
      'its own definitions',
      { $id: 'https://example.com/a', $ref: '#/$defs/a', $defs: { a: { type: 'number' } } },
      1,
    ],
    ['unknown keywords and formats', { format: 'cuid', example: 1, 'x-order': 2 }, 'a'],
    ['patternProperties', { patternProperties: { '^a': { type: 'number' } } }, { a: 1, b: '' }],
  ])('accepts %s', (_, schema, output) => {
    expect(checked(schema, output)).toEqual(output);
    expect(checked(structuredClone(schema), output)).toEqual(output);
  });

  it('adds default values to a copy of the output', () => {
    const output = { a: 1 };
    expect(checked({ properties: { b: { default: 2 } } }, output)).toEqual({ a: 1, b: 2 });
    expect(output).toEqual({ a: 1 });
  });

  it('shows five issues and the number of the others', () => {
    const issues = checked({ items: { type: 'null' } }, [1, 2, 3, 4, 5, 6, 7]);
    expect(issues).toHaveLength(6);
    expect(issues).toContain('and 2 more');
  });

  it.each(['^(a+)+$', '^(a|aa)+$'])(
    'checks the pattern %s in linear time',
    pattern => {
      expect(checked({ pattern }, `${'a'.repeat(50_000)}!`)).toEqual([
        `output: must match pattern "${pattern}"`,
      ]);
    },
    5000,
  );

  it('checks every format in linear time', () => {
    expect(checked({ format: 'url' }, `http://${'a:'.repeat(100_000)} `)).toEqual([
      'output: must match format "url"',
    ]);
  }, 5000);
});

describe('an output schema is refused', () => {
  it.each<[string, JsonObject, object]>([
    [
      'look-around',
      { properties: { a: { pattern: '^(?=a)' } } },
      {
        reason:
          'the pattern `^(?=a)` uses look-around, `(?=` at character 2, which cannot be matched in linear time',
        path: ['properties', 'a', 'pattern'],
        within: { start: 1, end: 4 },
        hint: 'write what the text must contain instead',
      },
    ],
    [
      'a back-reference in a name',
      { anyOf: [{ patternProperties: { '(a)\\1': true } }] },
      { path: ['anyOf', 0, 'patternProperties', '(a)\\1'], within: { start: 3, end: 5 } },
    ],
    ['an invalid pattern', { pattern: '(' }, { reason: expect.stringContaining('Unterminated group') }],
    [
      'an unknown type',
      { type: 'objekt' },
      { reason: expect.stringMatching(/^output\.type: must be one of .*, not "objekt"$/), path: ['type'] },
    ],
    [
      'an unknown dialect',
      { $schema: 'http://json-schema.org/draft-04/schema#' },
      { reason: expect.stringContaining('draft-04') },
    ],
    [
      'a reference to another document',
      { $ref: 'https://example.com/x' },
      { reason: expect.stringContaining('example.com') },
    ],
    ['an asynchronous check', { $async: true }, { reason: '`$async` is not supported' }],
  ])('for %s', (_, schema, refusal) => {
    expect(compileOutputSchema(schema)).toMatchObject({ kind: 'invalid', ...refusal });
  });

  it('but not for a pattern that the code of a workflow checks itself', () => {
    const schema = { properties: { a: { pattern: '^(?=a)' }, b: { pattern: '^b' } } };
    const compiled = compileOutputSchema(schema, { unsafePatterns: 'skip' });
    if (compiled.kind === 'invalid') throw new Error(compiled.reason);
    expect(compiled.parse({ a: 'b', b: 'b' })).toEqual({ a: 'b', b: 'b' });
    expect(() => compiled.parse({ b: 'a' })).toThrow('output.b');
  });
});
