import { describe, expect, test } from 'vitest';
import { structuredAnswer } from './result.ts';

const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
const fence = (text: string) => `\`\`\`json\n${text}\n\`\`\``;

describe('data is found', () => {
  test.each([
    ['where the agent gave it', { n: 1 }, 'whatever'],
    ['in a text that is nothing else', undefined, ' {"n":1}\n'],
    ['in a code fence', undefined, `Here:\n${fence('{"n":1}')}\nBye.`],
    [
      'in the last fence that fits',
      undefined,
      `${fence('{"n":2}')}\n${fence('{"n":1}')}\n${fence('{"m":1}')}`,
    ],
    [
      'in a fence after one that holds something else',
      undefined,
      `${fence('not JSON')}\n${fence('{"n":1}')}`,
    ],
  ])('%s', async (_where, given, text) => {
    expect(await structuredAnswer({ schema, given, text })).toEqual({ ok: true, value: { n: 1 } });
  });
});

describe('data is missed', () => {
  test.each([
    ['if the agent gave something else, although the text would fit', { n: 'x' }, '{"n":1}', /output\.n/],
    ['if nothing fits', undefined, fence('{"n":"x"}'), /output\.n/],
    ['if there is only text', undefined, 'I would rather talk.', /without data.*rather talk/s],
    ['if the fence does not end', undefined, '```json\n{"n":1}', /without data/],
  ])('%s', async (_why, given, text, message) => {
    expect(await structuredAnswer({ schema, given, text })).toMatchObject({
      ok: false,
      error: {
        code: 'OUTPUT_INVALID',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(/./),
      },
    });
  });

  test('if the schema itself makes no sense', async () => {
    const answer = await structuredAnswer({ schema: { type: 'nonsense' }, given: 1, text: '' });
    expect(answer).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('schema cannot be used') },
    });
  });
});

test('a text of a million fences takes no time', async () => {
  const text = '```json\n'.repeat(1_000_000);
  expect(await structuredAnswer({ schema, given: undefined, text })).toMatchObject({ ok: false });
});
