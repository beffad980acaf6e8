import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isScalar, parseDocument, type Scalar, stringify } from 'yaml';
import { offsetInFile } from './problem-list.ts';

const styles = ['PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE', 'BLOCK_LITERAL', 'BLOCK_FOLDED'] as const;

function scalarIn(text: string): Scalar {
  const node = parseDocument(text).getIn(['a', 0, 'key'], true);
  if (!isScalar(node)) throw new Error('not a scalar');
  return node;
}

/** Fragments of text that YAML quotes, escapes or folds. None contains the marker `@`. */
const words = fc.array(
  fc.constantFrom(
    'word',
    "it's",
    '"quoted"',
    'a: b',
    '# no',
    '\\',
    '\t',
    ' ',
    '  ',
    '\n',
    '\n\n',
    'é',
    '😀',
    '${{',
  ),
  { maxLength: 30 },
);

test('an offset in a value maps to its offset in the file for every scalar style', () => {
  fc.assert(
    fc.property(words, words, fc.constantFrom(...styles), (before, after, style) => {
      const value = [...before, '@', ...after].join(' ');
      const text = stringify({ a: [{ key: value }] }, { defaultStringType: style, lineWidth: 30 });
      const scalar = scalarIn(text);
      fc.pre(scalar.value === value);
      const offset = offsetInFile(text, scalar, value.indexOf('@'));
      expect(text.slice(offset, offset + 1)).toBe('@');
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ['a:\n  - key: "\\x41\\u0042\\U0001F600\\n \\\n      @"\n', '@'],
  ["a:\n  - key: 'it''s\n      @'\n", '@'],
  ['a:\n  - key: |2 # comment\n        @ x\n', '@'],
  ['a:\n  - key: >+\n      one\n\n      two @\n', '@'],
])('the marker in %j is found at its offset', (text, sign) => {
  const scalar = scalarIn(text);
  expect(offsetInFile(text, scalar, String(scalar.value).indexOf(sign))).toBe(text.indexOf(sign));
});

test('the end of a value maps to the offset after its last visible character', () => {
  const text = 'a:\n  - key: |\n      one\n      two  \n\n';
  const scalar = scalarIn(text);
  expect(offsetInFile(text, scalar, String(scalar.value).length)).toBe(text.indexOf('two') + 3);
});
