import { describe, expect, test } from 'vitest';
import { structuredAnswer } from './result.ts';

const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
const fence = (text: string) => `\`\`\`json\n${text}\n\`\`\``;

describe('structured output is found', () => {
  test.each([
    ['in the data of the agent', { n: 1 }, 'whatever'],
    ['in a text that is pure JSON', undefined, ' {"n":1}\n'],
    ['in a code fence', undefined, `Here:\n${fence('{"n":1}')}\nBye.`],
    [
      'in the last fence that matches the schema',
      undefined,
      `${fence('{"n":2}')}\n${fence('{"n":1}')}\n${fence('{"m":1}')}`,
    ],
    ['in a fence after one without JSON', undefined, `${fence('not JSON')}\n${fence('{"n":1}')}`],
  ])('%s', async (_where, given, text) => {
    expect(await structuredAnswer({ schema, given, text })).toEqual({ ok: true, value: { n: 1 } });
  });
});

describe('structured output is invalid', () => {
  test.each([
    ['if the data of the agent does not match, even if the text does', { n: 'x' }, '{"n":1}', /output\.n/],
    ['if nothing matches the schema', undefined, fence('{"n":"x"}'), /output\.n/],
    ['if there is only text', undefined, 'I would rather talk.', /no structured output.*rather talk/s],
    ['if the fence is not closed', undefined, '```json\n{"n":1}', /no structured output/],
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

  test('if the schema itself is invalid', async () => {
    const answer = await structuredAnswer({ schema: { type: 'nonsense' }, given: 1, text: '' });
    expect(answer).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('schema cannot be used') },
    });
  });
});

test('a string with a million fences is parsed in linear time', async () => {
  const text = '```json\n'.repeat(1_000_000);
  expect(await structuredAnswer({ schema, given: undefined, text })).toMatchObject({ ok: false });
});
