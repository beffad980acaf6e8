import { describe, expect, test } from 'vitest';
import { loadWorkflow } from '../load.ts';

const contract = (inputs: string) =>
  loadWorkflow({ file: 'w.yaml', text: `inputs:\n${inputs}\nsteps: [{ id: a, run: ls }]` }).input;

describe('the input of a workflow', () => {
  const all = contract(`
  issue: { required: true, description: The number. }
  count: { type: number, default: 3 }
  deep: { type: boolean }
  mode: { type: choice, options: [fast, slow], default: fast, required: true }
  data: { type: json }
  short: {}
  bare:
`);

  test('is declared field by field', () => {
    expect(all.fields).toEqual([
      { name: 'issue', type: 'string', required: true, description: 'The number.' },
      { name: 'count', type: 'number', required: false, default: 3 },
      { name: 'deep', type: 'boolean', required: false },
      { name: 'mode', type: 'choice', required: false, default: 'fast', options: ['fast', 'slow'] },
      { name: 'data', type: 'json', required: false },
      { name: 'short', type: 'string', required: false },
      { name: 'bare', type: 'string', required: false },
    ]);
  });

  test('gets its defaults', () => {
    expect(all.parse({ issue: '7' })).toEqual({ issue: '7', count: 3, mode: 'fast' });
    expect(contract('  x: {}').parse(undefined)).toEqual({});
  });

  test('may have the name of a property that every object has', () => {
    expect(contract('  constructor: {}').parse({})).toEqual({});
  });

  test('keeps given values', () => {
    const given = { issue: '', count: 0, deep: false, mode: 'slow', data: { a: [1] } };
    expect(all.parse(given)).toEqual(given);
  });

  test('is rejected with all of its problems', () => {
    const given = { isue: '7', count: '3', deep: 1, mode: 'medium' };
    expect(() => all.parse(given)).toThrowError(expect.objectContaining({ code: 'INPUT_INVALID' }));
    expect(() => all.parse(given)).toThrowErrorMatchingInlineSnapshot(`
      [RepriseError: unknown input \`isue\`; did you mean \`issue\`?
      \`issue\` is required
      \`count\` must be a number, not "3"
      \`deep\` must be true or false, not 1
      \`mode\` must be one of fast, slow, not "medium"]
    `);
  });

  test.each([[[1]], ['text'], [5], [{ data: new Map() }]])('is rejected if it is %j', given => {
    expect(() => all.parse(given)).toThrowError(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });
});
