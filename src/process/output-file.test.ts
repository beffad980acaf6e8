import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseOutputFile, readOutputFile } from './output-file.ts';
import { labPerTest } from './test-support.ts';

describe('a valid output file', () => {
  test.each([
    ['no text', '', {}],
    ['blank lines', '\n  \r\n\n', {}],
    ['one line', 'a=1\n', { a: '1' }],
    ['a last line without a line break', 'a=1\nb=2', { a: '1', b: '2' }],
    ['Windows line endings', 'a=1\r\nb=2\r\n', { a: '1', b: '2' }],
    ['a value that contains = and <<', 'url=http://x?a=b<<c', { url: 'http://x?a=b<<c' }],
    ['an empty value', 'a=', { a: '' }],
    ['spaces, which belong to the value and not to the key', ' a = 1 ', { a: ' 1 ' }],
    ['a repeated key', 'a=1\na=2', { a: '2' }],
    ['a key of Object.prototype', '__proto__=1', Object.fromEntries([['__proto__', '1']])],
    ['a single arrow in a key', 'a<b=1', { 'a<b': '1' }],
    ['a block', 'a<<EOF\none\n\n two=2\nEOF\nb=3', { a: 'one\n\n two=2', b: '3' }],
    ['a block with Windows line endings', 'a<<EOF\r\none\r\ntwo\r\nEOF\r\n', { a: 'one\ntwo' }],
    ['an empty block', 'a<<EOF\nEOF', { a: '' }],
    ['a block whose delimiter looks like a line', 'a<<x=y\n1\nx=y', { a: '1' }],
    ['an object', ' {"a": [1, null, "x"]} ', { a: [1, null, 'x'] }],
    ['an array', '\n[1]\n', [1]],
    ['a byte order mark', '\uFEFF{"a": 1}', { a: 1 }],
  ])('may contain %s', (_what, text, value) => {
    expect(parseOutputFile(text)).toEqual({ ok: true, value });
  });
});

describe('an invalid output file', () => {
  test.each([
    ['a line without =', 'a=1\n\noops', /^\$REPRISE_OUTPUT:3: not a line of key=value: "oops"/],
    ['a line without a key', '=1', /:1: not a line/],
    ['a bare value', '42', /:1: not a line/],
    ['a block that is not closed', 'x=1\na<<EOF\none', /:2: the block is not closed/],
    ['a block without a delimiter', 'a<<\none', /:1: << needs a word/],
    ['broken JSON', '{\n  "a": x\n}', /:2:8: not valid JSON/],
    ['JSON that ends too early', '[1,\n2', /:2:2: not valid JSON/],
    ['two values', '{}\n{}', /:2:1: not valid JSON/],
    ['a number that is too large', '{"a": 1e999}', /\$REPRISE_OUTPUT\.a is Infinity/],
    ['excessive nesting', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, /nested too deeply/],
    ['more than 10 MB', `a=${'é'.repeat(5 * 1024 * 1024)}`, /larger than 10 MB/],
  ])('is rejected with its position: %s', (_what, text, message) => {
    expect(parseOutputFile(text)).toEqual({
      ok: false,
      error: { code: 'OUTPUT_INVALID', message: expect.stringMatching(message), hint: expect.any(String) },
    });
  });

  test('is quoted only in part if its line is long', () => {
    const parsed = parseOutputFile('x'.repeat(1_000_000));
    expect(parsed.ok ? '' : parsed.error.message.length).toBeLessThan(200);
  });
});

const likelyText = fc
  .array(
    fc.constantFrom(
      'a',
      '=',
      '<<',
      '<',
      'EOF',
      '\n',
      '\r\n',
      '{',
      '}',
      '[',
      ']',
      '"',
      ',',
      ':',
      '\\',
      ' ',
      '1',
    ),
  )
  .map(parts => parts.join(''));

test('parsing never throws, and every rejection has a hint', () => {
  fc.assert(
    fc.property(fc.oneof(likelyText, fc.string({ unit: 'binary' })), text => {
      const parsed = parseOutputFile(text);
      if (!parsed.ok)
        expect(parsed.error).toMatchObject({ code: 'OUTPUT_INVALID', hint: expect.any(String) });
    }),
  );
});

test('values in blocks are read back unchanged', () => {
  const key = fc.stringMatching(/^[a-z]{1,3}$/);
  const value = fc.array(fc.string()).map(lines => lines.map(line => line.replace(/[\r\n]/g, '')).join('\n'));
  fc.assert(
    fc.property(fc.dictionary(key, value), values => {
      const text = Object.entries(values).map(([name, content]) => `${name}<<--end--\n${content}\n--end--\n`);
      expect(parseOutputFile(text.join(''))).toEqual({ ok: true, value: { ...values } });
    }),
  );
});

describe('reading the file', () => {
  const lab = labPerTest();
  const read = async (content: string | Buffer) => {
    const file = join(lab().folder, 'output');
    writeFileSync(file, content);
    return await readOutputFile(file);
  };

  test('decodes UTF-8', async () => {
    expect(await read('a=ü')).toEqual({ ok: true, value: { a: 'ü' } });
  });

  test('returns an empty object if the script removed it', async () => {
    expect(await readOutputFile(join(lab().folder, 'gone'))).toEqual({ ok: true, value: {} });
  });

  test('rejects a folder, binary data and a file that is too large', async () => {
    const folder = join(lab().folder, 'folder');
    mkdirSync(folder);
    expect(await readOutputFile(folder)).toMatchObject({
      error: { message: expect.stringContaining('no longer a file') },
    });
    expect(await read(Buffer.from([0x61, 0x3d, 0xff]))).toMatchObject({
      error: { message: expect.stringContaining('UTF-8') },
    });
    expect(await read(Buffer.alloc(11 * 1024 * 1024, 97))).toMatchObject({
      error: { message: expect.stringContaining('10 MB') },
    });
  });
});
