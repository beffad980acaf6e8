import { expect, it } from 'vitest';
import { PatternError } from '../../workflow/index.ts';
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

it('parses a string between slashes as a regular expression, and any other string literally', () => {
  const isIn = (written: string, text: string) => {
    const pattern = patternOf(written);
    return typeof pattern === 'string' ? undefined : pattern.test(text);
  };
  expect(['ABC', 'a.c', 'a-b'].map(text => isIn('/a.c/i', text))).toEqual([true, true, false]);
  expect(['it\nlanded\n', 'landed'].map(text => isIn('/^landed\\n$/m', text))).toEqual([true, false]);
  expect(patternOf('a.c')).toBe('a.c');
  expect(patternOf('/usr/bin/git')).toBe('/usr/bin/git');
  expect(patternOf('//')).toBe('//');
  expect(() => patternOf('/a(/')).toThrow(PatternError);
});
