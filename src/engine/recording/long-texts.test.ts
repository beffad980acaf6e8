import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../core/json.ts';
import { readLines } from '../../effects/recording/json-lines.ts';
import { putTextsBack, setTextsApart } from './long-texts.ts';

const fileOf = (...lines: readonly object[]): string =>
  lines.map(line => `${JSON.stringify(line)}\n`).join('');
const read = (text: string) => readLines('s.jsonl', text, { tornEnd: false });
const valuesOf = (text: string, blob?: Uint8Array): readonly JsonObject[] =>
  putTextsBack(read(text), blob && (() => blob)).map(({ value }) => value);

const header = { format: 2, kind: 'session', prompt: 'Fix it. '.repeat(50) };
const source = 'export const answer = 42;\n'.repeat(20);
const said = { text: 'I read the file and found nothing. '.repeat(20) };
const session = fileOf(
  header,
  { type: 'tool-start', id: 'a', name: 'Write', input: { file: 'a.ts', content: source } },
  { type: 'tool-end', id: 'a', ok: true, output: source },
  { type: 'tool-end', id: 'b', ok: true, output: 'short' },
  said,
);

describe('long texts', () => {
  it('move to one blob, except those that people review', () => {
    const { text, blob } = setTextsApart(session);
    const [first, where, ...rest] = text.split('\n');
    expect(first).toBe(JSON.stringify(header));
    expect(where).toBe(`{"long_texts":"${blob?.sha}"}`);
    expect(rest).toEqual([
      '{"type":"tool-start","id":"a","name":"Write","input":{"file":"a.ts","content":{"long":"0 export const answer = 42;\\nexport const a…"}}}',
      '{"type":"tool-end","id":"a","ok":true,"output":{"long":"0 export const answer = 42;\\nexport const a…"}}',
      '{"type":"tool-end","id":"b","ok":true,"output":"short"}',
      JSON.stringify(said),
      '',
    ]);
    expect(gunzipSync(blob?.content ?? '').toString()).toBe(`${JSON.stringify(source)}\n`);
    expect(valuesOf(text, blob?.content)).toEqual(valuesOf(session));
  });

  it('are restored wherever they were', () => {
    const leaf = fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.constantFrom<unknown>(source, source.slice(1), { long: '0 so' }, { long: [{ long: source }] }),
    );
    const lines = fc.array(
      fc.record({
        type: fc.constant('tool-end'),
        output: fc.oneof(leaf, fc.array(leaf), fc.dictionary(fc.string(), leaf)),
      }),
    );
    fc.assert(
      fc.property(lines, given => {
        const file = fileOf(header, ...given);
        const { text, blob } = setTextsApart(file);
        expect(valuesOf(text, blob?.content)).toEqual(valuesOf(file));
      }),
      { numRuns: 300 },
    );
  });

  it('are reported with file and line if they are missing', () => {
    const { text, blob } = setTextsApart(session);
    expect(() => valuesOf(text)).toThrow(`s.jsonl:2 refers to blobs/${blob?.sha}, which cannot be read`);
    expect(() => valuesOf(text.replace(blob?.sha ?? '', '../../x'), blob?.content)).toThrow(
      's.jsonl:2 `long_texts` must be a sha256',
    );
    expect(() => valuesOf(text, Buffer.from('no gzip'))).toThrow('incorrect header check');
    expect(() => valuesOf(text.replace('{"long":"0 ', '{"long":"7 '), blob?.content)).toThrow(
      's.jsonl:3 refers to a text that is not in the blob: 7 export',
    );
  });
});
