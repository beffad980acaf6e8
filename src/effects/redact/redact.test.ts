import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRedactor } from './redact.ts';

const paths = [
  { name: 'repo', path: '/srv/ada/project' },
  { name: 'state', path: '/srv/ada/project/.reprise/state' },
  { name: 'home', path: '/srv/ada' },
  { name: 'quoted', path: '/srv/"odd" name' },
];
const password = 'p@ss/word+"1"';
const secrets = [
  { name: 'DEPLOY_TOKEN', value: 'correct-horse-battery' },
  { name: 'DB_PASSWORD', value: password },
  { name: 'SHORT_TOKEN', value: 'abc' },
  { name: 'FLAG_TOKEN', value: 'enabled' },
  { name: 'TRICKY_KEY', value: 'SECRET:X' },
];
const redactor = createRedactor({ paths, secrets });

describe('paths', () => {
  it.each([
    ['the longest is found first', '/srv/ada/project/.reprise/state/x', '<PATH:state>/x'],
    ['a shorter one where the longer one does not end', '/srv/ada/projects', '<PATH:home>/projects'],
    ['not inside of another name', '/srv/ada-2 /srv/ada.txt /srv/adam', '/srv/ada-2 /srv/ada.txt /srv/adam'],
    ['not below another folder', 'x/srv/ada ./srv/ada ${D}/srv/ada', 'x/srv/ada ./srv/ada ${D}/srv/ada'],
    ['not as the host of an address', 'https://srv/ada', 'https://srv/ada'],
    ['at the end of a sentence', 'cannot open /srv/ada.', 'cannot open <PATH:home>.'],
    ['in a list', 'PATH=/bin:/srv/ada/bin:/srv/ada', 'PATH=/bin:<PATH:home>/bin:<PATH:home>'],
    ['in an address of a file', 'file:///srv/ada/x', 'file://<PATH:home>/x'],
    ['after a flag', 'cc -I/srv/ada/include', 'cc -I<PATH:home>/include'],
    ['after a redirection', 'echo >/srv/ada/x', 'echo ><PATH:home>/x'],
    ['in text that is JSON', '{\\"at\\":\\"/srv/\\"odd\\" name/x\\"}', '{\\"at\\":\\"<PATH:quoted>/x\\"}'],
    ['once only, if a folder in it has the name of another', '/srv/ada/srv/ada/x', '<PATH:home>/srv/ada/x'],
  ])('%s', (_, given, expected) => expect(redactor.text(given)).toBe(expected));

  it('have one name, whether a link leads to them or not', () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-redact-')));
    const link = `${folder}-link`;
    symlinkSync(folder, link);
    try {
      const { text } = createRedactor({ paths: [{ name: 'repo', path: `${link}/` }], secrets: [] });
      expect(text(`${folder}/a ${link}/b`)).toBe('<PATH:repo>/a <PATH:repo>/b');
    } finally {
      rmSync(link);
      rmSync(folder, { recursive: true });
    }
  });

  it('have one name with and without /private', () => {
    const { text } = createRedactor({ paths: [{ name: 'tmp', path: '/var/folders/ab' }], secrets: [] });
    expect(text('/private/var/folders/ab/x /var/folders/ab/x')).toBe('<PATH:tmp>/x <PATH:tmp>/x');
  });

  it('come back where they were, and secrets do not', () => {
    const value = { '/srv/ada/project/x': ['/srv/ada', 1, null], b: 'correct-horse-battery' };
    expect(redactor.expand(redactor.json(value))).toEqual({ ...value, b: '<SECRET:DEPLOY_TOKEN>' });
    expect(redactor.expand('<PATH:unknown>/x')).toBe('<PATH:unknown>/x');
  });
});

describe('known secrets', () => {
  const basic = Buffer.from(`user:${password}`).toString('base64');
  it.each([
    ['in the middle of a word', 'xcorrect-horse-batteryx', 'x<SECRET:DEPLOY_TOKEN>x'],
    ['in the query of an address', `?q=${encodeURIComponent(password)}`, '?q=<SECRET:DB_PASSWORD>'],
    ['with small letters in its codes', '?q=p%40ss%2fword%2b%221%22', '?q=<SECRET:DB_PASSWORD>'],
    ['inside of JSON', JSON.stringify({ password }), '{"password":"<SECRET:DB_PASSWORD>"}'],
    ['not if it is short', 'abc', 'abc'],
    ['not if it is a common word', 'enabled', 'enabled'],
    [
      'inside of what only looks like a placeholder',
      '<SECRET:correct-horse-battery>',
      '<SECRET:<SECRET:DEPLOY_TOKEN>>',
    ],
    ['not inside of a placeholder', '<SECRET:X> SECRET:X', '<SECRET:X> <SECRET:TRICKY_KEY>'],
  ])('%s', (_, given, expected) => expect(redactor.text(given)).toBe(expected));

  it.each(['', 'u', 'us', 'use'])('in base64 of something that begins with "%s"', before => {
    const encoded = Buffer.from(`${before}correct-horse-battery!`).toString('base64');
    const hidden = redactor.text(`data ${encoded}`);
    expect(hidden).toContain('<SECRET:DEPLOY_TOKEN>');
    expect(hidden.length).toBeLessThan(`data  <SECRET:DEPLOY_TOKEN>`.length + 10);
    expect(redactor.text(basic)).not.toBe(basic);
  });

  it('with several lines, also line by line', () => {
    const value =
      '-----BEGIN X-----\nabcdefghijklmnopqrstuvwxyz\nzyxwvutsrqponmlkjihgfedcba\n-----END X-----';
    const { text } = createRedactor({ paths: [], secrets: [{ name: 'PEM', value }] });
    expect(text('> zyxwvutsrqponmlkjihgfedcba')).toBe('> <SECRET:PEM>');
    expect(text(JSON.stringify(JSON.stringify({ value })))).not.toContain('abcdefghijklm');
  });
});

/** Texts in which everything that is looked for stands beside everything else. */
const pieces = fc.constantFrom(
  ...paths.flatMap(({ path }) => [path, `${path}/x`]),
  ...secrets.map(({ value }) => value),
  ...secrets.map(({ value }) => encodeURIComponent(value)),
  ...['a', 'ab', 'abc'].map(text => Buffer.from(`${text}correct-horse-battery`).toString('base64')),
  ...['/', '.', '-', ' ', '"', '\\', '\n', '>', '<', ':', '=', '@', 'é', '://', '-I', 'x', '\ud800', '%'],
  ...[
    'Authorization: Bearer ',
    'x-api-key: ',
    'cookie: a=',
    '?token=',
    'https://u:',
    '@host',
    '<PATH:',
    '<SECRET:',
  ],
  `sk-${'ant-'}${'a1'.repeat(12)}`,
  `gh${'p_'}${'Ab1'.repeat(12)}`,
  `AK${'IA'}${'ABCD1234'.repeat(2)}`,
  'aB3/'.repeat(10),
  '<PATH:home>',
  '<SECRET:X>',
);
const texts = fc.array(pieces, { maxLength: 10 }).map(parts => parts.join(''));
const values = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    texts,
    fc.integer(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(texts, fc.constantFrom('authorization', 'Cookie', 'x-api-key')), tie('value'), {
      maxKeys: 3,
    }),
  ),
})).value;

describe('redaction', () => {
  it('done twice changes nothing', () => {
    fc.assert(
      fc.property(texts, given => {
        const once = redactor.text(given);
        expect(redactor.text(once)).toBe(once);
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(values, given => {
        const once = redactor.json(given);
        expect(redactor.json(once)).toEqual(once);
      }),
      { numRuns: 1000 },
    );
  });

  it('of a line of JSON is that of what it says', () => {
    fc.assert(
      fc.property(values, given => {
        const line = redactor.line(JSON.stringify(given));
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(redactor.json(given))));
        expect(redactor.lines(`${JSON.stringify(given)}\n{}\n`)).toBe(`${line}\n{}\n`);
      }),
      { numRuns: 2000 },
    );
  });

  it('leaves no secret, in whatever stands around it', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        expect(redactor.text(`${before} correct-horse-battery ${after}`)).not.toContain(
          'correct-horse-battery',
        );
      }),
      { numRuns: 1000 },
    );
  });

  it('of paths alone can be undone', () => {
    const separators = fc.constantFrom('/', ' ', ':', '"', '\n', 'x', '/src', '.', '-', '..', 'é', '(');
    const names = fc.constantFrom(...paths.map(({ path }) => path));
    fc.assert(
      fc.property(fc.array(fc.oneof(separators, names), { maxLength: 8 }), parts => {
        const given = parts.join('');
        expect(redactor.expand(redactor.text(given))).toBe(given);
      }),
      { numRuns: 2000 },
    );
  });

  it('hides the values of headers, whatever they look like', () => {
    expect(redactor.json({ Authorization: 'x y', 'X-Api-Key': 'k', accept: 'k', cookie: '' })).toEqual({
      Authorization: '<SECRET:AUTHORIZATION>',
      'X-Api-Key': '<SECRET:X-API-KEY>',
      accept: 'k',
      cookie: '',
    });
  });

  it('takes a line that is no JSON as a text', () => {
    expect(redactor.line('{"torn":"/srv/ada')).toBe('{"torn":"<PATH:home>');
  });
});
