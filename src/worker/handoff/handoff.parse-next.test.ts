import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../core/json.ts';
import { type NextAction, parseNext } from './handoff.ts';

const parse = (text: string, structured?: Json): NextAction | string => {
  const parsed = parseNext({ text, structured });
  return parsed.kind === 'next' ? parsed.next : parsed.message;
};
const inTag = (content: string): NextAction | string => parse(`Done so far.\n\n<next>${content}</next>\n`);
const agent = (name: string, args: Record<string, string> = {}): NextAction => ({
  kind: 'agent',
  agent: name,
  args,
});
const giveUp = (reason: string): NextAction => ({ kind: 'give-up', reason });

describe('the next action', () => {
  test.each<[string, NextAction]>([
    ['agent: review', agent('review')],
    ['\nagent: review\nnotes: Look at it.\n', agent('review', { notes: 'Look at it.' })],
    ['\n  agent: review\n  notes: Look at it.\n', agent('review', { notes: 'Look at it.' })],
    [
      'agent: review\n  notes: Look at it.\n  files: a',
      agent('review', { notes: 'Look at it.', files: 'a' }),
    ],
    ['\n\tagent: review\n\tnotes: Look at it.\n', agent('review', { notes: 'Look at it.' })],
    ['\r\nagent: review\r\nnotes: Look at it.\r\n', agent('review', { notes: 'Look at it.' })],
    ['{"agent": "review", "notes": "Look", "times": 2}', agent('review', { notes: 'Look', times: '2' })],
    ['{agent: review, notes: Look}', agent('review', { notes: 'Look' })],
    ['agent: review\nargs:\n  notes: Look', agent('review', { notes: 'Look' })],
    ['{"agent": "review", "arguments": {"notes": "Look"}}', agent('review', { notes: 'Look' })],
    ['review:\n  notes: Look', agent('review', { notes: 'Look' })],
    ['review:', agent('review')],
    ['- agent: review', agent('review')],
    ['Agent: `review`', agent('review')],
    ['next:\n  agent: review', agent('review')],
    ['agent: review # it is time', agent('review')],
  ])('names another agent: %j', (content, expected) => {
    expect(inTag(content)).toEqual(expected);
  });

  test.each<[string, Record<string, string>]>([
    ['n: 1.10\nb: true\nz: 007\ne:', { n: '1.10', b: 'true', z: '007', e: '' }],
    ['notes: |\n  One.\n\n    Two: 2.\nmore: >-\n  a\n  b', { notes: 'One.\n\n  Two: 2.', more: 'a b' }],
    ['notes: Fixed: the parser', { notes: 'Fixed: the parser' }],
    ['notes: Fixed: the parser\nwith care\nmore: x', { notes: 'Fixed: the parser\nwith care', more: 'x' }],
    ['notes: |\n Fixed\nmore: a: b', { notes: 'Fixed', more: 'a: b' }],
    ['notes: fix #12 as well\nmore: x', { notes: 'fix #12 as well', more: 'x' }],
    ['notes: "fix #12: all"', { notes: 'fix #12: all' }],
    ['notes: *all* of it', { notes: '*all* of it' }],
    ['notes: @anna said "no" to it', { notes: '@anna said "no" to it' }],
    ['notes: !important thing', { notes: '!important thing' }],
    ['notes: "never closed', { notes: '"never closed' }],
    ['notes: `x` and [y', { notes: '`x` and [y' }],
    ['files: [a.ts, b.ts]', { files: '["a.ts","b.ts"]' }],
    ['where: { file: a.ts, line: 3 }', { where: '{"file":"a.ts","line":"3"}' }],
    ['notes: |\n  Run\n  ```\n  npm test\n  ```', { notes: 'Run\n```\nnpm test\n```' }],
    ['constructor: x', { constructor: 'x' }],
  ])('has arguments, all of them strings: %j', (content, args) => {
    expect(inTag(`\nagent: review\n${content}\n`)).toEqual(agent('review', args));
  });

  test.each<[string, NextAction]>([
    ['review', agent('review')],
    [' "review" ', agent('review')],
    ['`review`.', agent('review')],
    ['land', { kind: 'land' }],
    ['Land.', { kind: 'land' }],
    ['done', { kind: 'land' }],
    ['land: true', { kind: 'land' }],
    ['land:', { kind: 'land' }],
    ['land: all is well', { kind: 'land' }],
    ['agent: land', { kind: 'land' }],
    ['{"land": true, "give_up": false}', { kind: 'land' }],
    ['sleep', { kind: 'sleep' }],
    ['sleep: true', { kind: 'sleep' }],
    ['give-up', giveUp('no reason was given')],
    ['give up', giveUp('no reason was given')],
    ['give_up: too hard', giveUp('too hard')],
    ['give-up: |\n  Two\n  lines', giveUp('Two\nlines')],
    ['Give up: it is: too hard', giveUp('it is: too hard')],
    ['give-up: true\nreason: too hard', giveUp('too hard')],
    ['give-up:\n  reason: too hard', giveUp('too hard')],
    ['agent: give-up\nreason: too hard', giveUp('too hard')],
  ])('is a word, or a word with a reason: %j', (content, expected) => {
    expect(inTag(content)).toEqual(expected);
  });

  test.each<[string, NextAction]>([
    ['<next>agent: a</next> no: <next>agent: b</next> yes', agent('b')],
    ['<next>agent: a <next>agent: b</next>', agent('b')],
    ['<NEXT>agent: a</Next>', agent('a')],
    ['< next >\nagent: a\n</ next >', agent('a')],
    ['<next>agent: a', agent('a')],
    ['<next>agent: a</next', agent('a')],
    ['```xml\n<next>\nagent: a\n</next>\n```', agent('a')],
    ['```\n<next>\nagent: a\n```', agent('a')],
    ['<next>\n```yaml\nagent: a\nn: 1\n```\n</next>', agent('a', { n: '1' })],
    ['<next>\n```json\n{"agent": "a"}\n```\n</next>', agent('a')],
    ['`<next>land</next>`', { kind: 'land' }],
    ['<next>land</next>\n\nI have ended with `<next>`, as you wanted.', { kind: 'land' }],
  ])('is read from the last tag: %j', (text, expected) => {
    expect(parse(text)).toEqual(expected);
  });

  test('is read from the structured output if it has one', () => {
    const text = '<next>agent: told</next>';
    expect(parse(text, { next: { agent: 'a', n: 1 } })).toEqual(agent('a', { n: '1' }));
    expect(parse(text, { next: 'land', summary: 'x' })).toEqual({ kind: 'land' });
    expect(parse(text, { agent: 'a', notes: 'x' })).toEqual(agent('a', { notes: 'x' }));
    for (const none of [null, {}, [], 'x', { summary: 'x' }, { next: null }])
      expect(parse(text, none)).toEqual(agent('told'));
    expect(parse(text, { next: {} })).toMatchInlineSnapshot(
      `"The structured answer must name an \`agent\`, or be \`land\` or \`give-up\`."`,
    );
  });

  test('is rejected if it is missing or unclear', () => {
    expect(parse('All done.')).toMatchInlineSnapshot(`"Your last message has no \`<next>\` tag."`);
    expect(parse('Use `<next>` to go on.')).toMatchInlineSnapshot(
      `"Your last message has no \`<next>\` tag."`,
    );
    expect(inTag(' \n ')).toMatchInlineSnapshot(`"The \`<next>\` tag is empty."`);
    expect(inTag('```\n```')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must contain one word or \`agent: name\`, not nothing."`,
    );
    expect(inTag('let the reviewer look at it now')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must contain one word or \`agent: name\`, not \`let the reviewer look at it now\`."`,
    );
    expect(inTag('notes: x\nto: review')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must name an \`agent\`, or be \`land\` or \`give-up\`; found \`notes\`, \`to\`."`,
    );
    expect(inTag('land: false')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must name an \`agent\`, or be \`land\` or \`give-up\`; found \`land\`."`,
    );
    expect(inTag('land: true\ngive-up: too hard')).toMatchInlineSnapshot(
      `"The \`<next>\` tag has both \`land\` and \`give-up\`."`,
    );
    expect(inTag('agent:\nnotes: x')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must name one agent at \`agent\`, not nothing."`,
    );
    expect(inTag('agent: review\nPlease look at it.')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must name one agent at \`agent\`, not \`review Please look at it.\`."`,
    );
    expect(inTag('agent: [a, b]')).toMatchInlineSnapshot(
      `"The \`<next>\` tag must name one agent at \`agent\`, not \`["a","b"]\`."`,
    );
    expect(inTag('{"agent": ')).toMatchInlineSnapshot(
      `"The \`<next>\` tag cannot be read as YAML: Flow map must end with a }."`,
    );
    expect(inTag('['.repeat(5000))).toMatchInlineSnapshot(
      `"The \`<next>\` tag cannot be read as YAML: it is nested too deeply."`,
    );
  });
});

describe('any answer', () => {
  const piece = fc.constantFrom(
    '<next>',
    '</next>',
    '<NEXT >',
    'agent',
    'review',
    'land',
    'give-up',
    ': ',
    ':',
    '\n',
    '\r\n',
    '  ',
    '\t',
    '- ',
    '? ',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '|\n',
    '&a ',
    '*a',
    '!x ',
    '#',
    '---\n',
    '```',
    ',',
    '%YAML',
    '\u0000',
    '__proto__',
  );
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 30 }).map(pieces => pieces.join('')),
    fc.array(piece, { maxLength: 30 }).map(pieces => `<next>${pieces.join('')}</next>`),
  );

  test('is parsed or rejected with a sentence, and its arguments are strings', () => {
    fc.assert(
      fc.property(text, fc.option(fc.jsonValue(), { nil: undefined }), (given, structured) => {
        const parsed = parseNext({ text: given, structured: structured as Json | undefined });
        if (parsed.kind === 'problem') expect(parsed.message).toMatch(/^[A-Z].*\.$/s);
        else if (parsed.next.kind === 'agent') {
          expect(parsed.next.agent).not.toBe('');
          for (const value of Object.values(parsed.next.args)) expect(value).toBeTypeOf('string');
        }
      }),
      { numRuns: 1500 },
    );
  });

  const name = fc
    .stringMatching(/^[a-z][a-z0-9_-]{0,10}$/)
    .filter(word => !/^(land|done|sleep|give[-_]?up|agent)$/.test(word));
  const argument = name.filter(word => !/^(args|arguments|inputs|with)$/.test(word));

  test('is parsed losslessly from JSON', () => {
    fc.assert(
      fc.property(
        name,
        fc.dictionary(
          argument,
          fc.string().map(value => value.trim()),
        ),
        (wanted, args) => {
          const written = JSON.stringify({ agent: wanted, ...args }).replaceAll('<', '\\u003c');
          expect(inTag(written)).toEqual(agent(wanted, args));
        },
      ),
    );
  });

  test('is parsed losslessly from plain lines', () => {
    const line = fc.stringMatching(/^[A-Za-z][A-Za-z0-9 :#,.!?()*&@%'-]{0,40}$/).map(value => value.trim());
    fc.assert(
      fc.property(name, fc.dictionary(argument, line, { minKeys: 1 }), (wanted, args) => {
        const written = Object.entries({ agent: wanted, ...args }).map(([key, value]) => `${key}: ${value}`);
        expect(inTag(`\n${written.join('\n')}\n`)).toEqual(agent(wanted, args));
      }),
      { numRuns: 300 },
    );
  });
});
