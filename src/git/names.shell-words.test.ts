import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { printable, shellWord } from './names.ts';

it('shows ordinary names as they are, and quotes misleading ones', () => {
  for (const name of ['a.txt', 'src/söme file.ts', '日本語.md', '-x']) expect(printable(name)).toBe(name);
  expect(printable('a, b')).toBe('"a, b"');
  expect(printable('two\nlines')).toBe('"two\\nlines"');
  expect(printable(' a')).toBe('" a"');
  expect(printable('\x1b[2J\x9b1m\u202e')).toBe('"\\u001b[2J\\u009b1m\\u202e"');
});

it('quotes every word so that a shell reads it back unchanged', () => {
  const word = fc.string({ unit: 'grapheme' }).filter(text => !text.includes('\0'));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 20 }), words => {
      const output = execFileSync('sh', ['-c', `printf '%s\\0' ${words.map(shellWord).join(' ')}`]);
      expect(output.toString().split('\0').slice(0, -1)).toEqual(words);
    }),
    { numRuns: 30 },
  );
});
