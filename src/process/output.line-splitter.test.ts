import { expect, test } from 'vitest';
import { LineSplitter, maxLineLength } from './output.ts';

function split(...chunks: (string | Buffer)[]): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter(line => lines.push(line));
  for (const chunk of chunks) splitter.push(Buffer.from(chunk));
  splitter.end();
  return lines;
}

test('lines are joined across chunks, and the last one needs no line break', () => {
  expect(split('on', 'e\ntw', 'o\n\nfour')).toEqual(['one', 'two', '', 'four']);
});

test('carriage returns at the end of a line are dropped', () => {
  expect(split('one\r', '\ntwo\r\n')).toEqual(['one', 'two']);
});

test('a character that arrives in two chunks stays intact', () => {
  const bytes = Buffer.from('é\n');
  expect(split(bytes.subarray(0, 1), bytes.subarray(1))).toEqual(['é']);
});

test('a line beyond the limit is cut without affecting the next one', () => {
  const exact = 'x'.repeat(maxLineLength);
  expect(split(`${exact}\n`, exact, 'more', 'and more\nnext\n')).toEqual([exact, `${exact}…`, 'next']);
});
