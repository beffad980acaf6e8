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

describe('redaction of paths', () => {
  it.each([
    ['prefers the longest path', '/srv/ada/project/.reprise/state/x', '<PATH:state>/x'],
    [
      'takes a shorter path if the longer one does not end there',
      '/srv/ada/projects',
      '<PATH:home>/projects',
    ],
    ['skips longer names', '/srv/ada-2 /srv/ada.txt /srv/adam', '/srv/ada-2 /srv/ada.txt /srv/adam'],
    [
      'skips paths below another folder',
      'x/srv/ada ./srv/ada ${D}/srv/ada',
      'x/srv/ada ./srv/ada ${D}/srv/ada',
    ],
    ['skips the host of a URL', 'https://srv/ada', 'https://srv/ada'],
    ['finds a path at the end of a sentence', 'cannot open /srv/ada.', 'cannot open <PATH:home>.'],
    ['finds a path in a list', 'PATH=/bin:/srv/ada/bin:/srv/ada', 'PATH=/bin:<PATH:home>/bin:<PATH:home>'],
    [
      'finds an absolute path in a diff',
      'diff --git a/srv/ada/x b/srv/ada/x\n--- a/srv/ada/x',
      'diff --git a<PATH:home>/x b<PATH:home>/x\n--- a<PATH:home>/x',
    ],
    ['finds a path in a file URL', 'file:///srv/ada/x', 'file://<PATH:home>/x'],
    ['finds a path after a flag', 'cc -I/srv/ada/include', 'cc -I<PATH:home>/include'],
    ['finds a path after a redirection', 'echo >/srv/ada/x', 'echo ><PATH:home>/x'],
    ['finds a path in JSON', '{\\"at\\":\\"/srv/\\"odd\\" name/x\\"}', '{\\"at\\":\\"<PATH:quoted>/x\\"}'],
    ['replaces only the first of two nested matches', '/srv/ada/srv/ada/x', '<PATH:home>/srv/ada/x'],
  ])('%s', (_, given, expected) => expect(redactor.text(given)).toBe(expected));

  it('uses one name for a folder and for a symbolic link to it', () => {
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

  it('uses one name with and without /private', () => {
    const { text } = createRedactor({ paths: [{ name: 'tmp', path: '/var/folders/ab' }], secrets: [] });
    expect(text('/private/var/folders/ab/x /var/folders/ab/x')).toBe('<PATH:tmp>/x <PATH:tmp>/x');
  });

  it('can be undone by expand, which keeps secrets hidden', () => {
    const value = { '/srv/ada/project/x': ['/srv/ada', 1, null], b: 'correct-horse-battery' };
    expect(redactor.expand(redactor.json(value))).toEqual({ ...value, b: '<SECRET:DEPLOY_TOKEN>' });
    expect(redactor.expand('<PATH:unknown>/x')).toBe('<PATH:unknown>/x');
  });
});

describe('a redactor that learns secrets', () => {
  it('hides them from then on, and says so once', () => {
    const learning = createRedactor({ paths: [], secrets: [] });
    let calls = 0;
    learning.onLearned(() => calls++);
    expect(learning.text('hunter2hunter2')).toBe('hunter2hunter2');
    const secret = { name: 'DB_PASSWORD', value: 'hunter2hunter2' };
    learning.learn([secret, { name: 'SHORT', value: 'abc' }]);
    learning.learn([secret]);
    expect(learning.text('hunter2hunter2 abc')).toBe('<SECRET:DB_PASSWORD> abc');
    expect([calls, learning.secrets]).toEqual([1, [secret]]);
  });
});

describe('redaction of known secrets', () => {
  const basic = Buffer.from(`user:${password}`).toString('base64');
  it.each([
    ['finds a secret in the middle of a word', 'xcorrect-horse-batteryx', 'x<SECRET:DEPLOY_TOKEN>x'],
    ['finds a secret in the query of a URL', `?q=${encodeURIComponent(password)}`, '?q=<SECRET:DB_PASSWORD>'],
    ['finds lower-case percent-encoding', '?q=p%40ss%2fword%2b%221%22', '?q=<SECRET:DB_PASSWORD>'],
    ['finds a secret in JSON', JSON.stringify({ password }), '{"password":"<SECRET:DB_PASSWORD>"}'],
    ['ignores a short secret', 'abc', 'abc'],
    ['ignores a common word', 'enabled', 'enabled'],
    [
      'finds a secret in text that only looks like a placeholder',
      '<SECRET:correct-horse-battery>',
      '<SECRET:<SECRET:DEPLOY_TOKEN>>',
    ],
    ['leaves a placeholder alone', '<SECRET:X> SECRET:X', '<SECRET:X> <SECRET:TRICKY_KEY>'],
  ])('%s', (_, given, expected) => expect(redactor.text(given)).toBe(expected));

  it.each(['', 'u', 'us', 'use'])('finds a secret in base64 after "%s"', before => {
    const encoded = Buffer.from(`${before}correct-horse-battery!`).toString('base64');
    const hidden = redactor.text(`data ${encoded}`);
    expect(hidden).toContain('<SECRET:DEPLOY_TOKEN>');
    expect(hidden.length).toBeLessThan(`data  <SECRET:DEPLOY_TOKEN>`.length + 10);
    expect(redactor.text(basic)).not.toBe(basic);
  });

  it('finds single lines of a multi-line secret', () => {
    const value =
      '-----BEGIN X-----\nabcdefghijklmnopqrstuvwxyz\nzyxwvutsrqponmlkjihgfedcba\n-----END X-----';
    const { text } = createRedactor({ paths: [], secrets: [{ name: 'PEM', value }] });
    expect(text('> zyxwvutsrqponmlkjihgfedcba')).toBe('> <SECRET:PEM>');
    expect(text(JSON.stringify(JSON.stringify({ value })))).not.toContain('abcdefghijklm');
  });
});

/** Pieces of random text, in which every kind of match can be next to every other. */
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
  it('is idempotent', () => {
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

  it('of a line of JSON equals redaction of the parsed value', () => {
    fc.assert(
      fc.property(values, given => {
        const line = redactor.line(JSON.stringify(given));
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(redactor.json(given))));
        expect(redactor.lines(`${JSON.stringify(given)}\n{}\n`)).toBe(`${line}\n{}\n`);
      }),
      { numRuns: 2000 },
    );
  });

  it('leaves no secret in any surrounding text', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        expect(redactor.text(`${before} correct-horse-battery ${after}`)).not.toContain(
          'correct-horse-battery',
        );
      }),
      { numRuns: 1000 },
    );
  });

  it('can be undone if only paths were replaced', () => {
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

  it('hides the values of secret headers even if they do not look secret', () => {
    expect(redactor.json({ Authorization: 'x y', 'X-Api-Key': 'k', accept: 'k', cookie: '' })).toEqual({
      Authorization: '<SECRET:AUTHORIZATION>',
      'X-Api-Key': '<SECRET:X-API-KEY>',
      accept: 'k',
      cookie: '',
    });
  });

  it('treats a line that is not JSON as text', () => {
    expect(redactor.line('{"torn":"/srv/ada')).toBe('{"torn":"<PATH:home>');
  });
});
