import { expect, it } from 'vitest';
import { patternOf, splitArguments } from './fields.ts';

it.each([
  ['', []],
  ['  a  b\tc\n', ['a', 'b', 'c']],
  [`'a b' "c d" e\\ f`, ['a b', 'c d', 'e f']],
  [`a'b'"c"d ''`, ['abcd', '']],
  [`"it's" 'say "hi"'`, ["it's", 'say "hi"']],
  [`"\\"x\\" \\\\ \\n \\$HOME"`, ['"x" \\ \\n $HOME']],
  ['$HOME * a|b > c; `x`', ['$HOME', '*', 'a|b', '>', 'c;', '`x`']],
  ['a \\\nb', ['a', 'b']],
  [`'open`, undefined],
  [`"open`, undefined],
  [`"open\\"`, undefined],
  ['end\\', undefined],
])('splits %j like a shell, without expansions', (text, words) => {
  expect(splitArguments(text)).toEqual(words);
});

it('parses a text between slashes as a regular expression, and any other text literally', () => {
  expect(patternOf('/a.c/i')).toEqual(/a.c/i);
  expect(patternOf('/^landed\\n$/m')).toEqual(/^landed\n$/m);
  expect(patternOf('a.c')).toBe('a.c');
  expect(patternOf('/usr/bin/git')).toBe('/usr/bin/git');
  expect(patternOf('//')).toBe('//');
  expect(() => patternOf('/a(/')).toThrow(SyntaxError);
});
