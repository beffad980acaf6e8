import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePattern, PatternError } from './pattern.ts';

const refusal = (source: string, flags?: string): unknown => {
  try {
    return compilePattern(source, flags);
  } catch (error) {
    return error;
  }
};

describe('a pattern', () => {
  it.each([
    ['^(a+)+$', `${'a'.repeat(50_000)}!`],
    ['^(a|a)*$', `${'a'.repeat(50_000)}!`],
    ['(x+x+)+y', 'x'.repeat(50_000)],
  ])(
    '%s takes linear time',
    (source, text) => {
      expect(compilePattern(source).test(text)).toBe(false);
    },
    5000,
  );

  it.each([
    ['^a.c$', '', 'abc', true],
    ['^a.c$', '', 'a\nc', false],
    ['^a.c$', 's', 'a\nc', true],
    ['^b$', '', 'a\nb', false],
    ['^b$', 'm', 'a\nb\nc', true],
    ['ABC', 'i', 'xabcx', true],
    ['b', 'y', 'ab', false],
    ['a', 'dgu', 'ba', true],
    ['^\\s$', '', '\u00a0', true],
    ['^[^\\S]$', '', '\u00a0', true],
    ['[[:alpha:]]', '', ':]', true],
    ['^[]$', '', '', false],
    ['^[^]$', '', '\n', true],
    ['^[\\b]$', '', '\b', true],
    ['^\\A\\z$', '', 'Az', true],
    ['^x{,2}$', '', 'x{,2}', true],
    ['^\\cJ$', '', '\n', true],
    ['^\\0$', '', '\0', true],
    ['^\\ud83d\\ude00\\u{1F600}$', 'u', '😀😀', true],
    ['^\\u0041\\u0042\\x43$', '', 'ABC', true],
    ['^\\p{Script=Greek}\\p{Lu}$', 'u', 'αB', true],
    ['^(?<year>\\d{4})-(?:\\d\\d)\\/$', '', '2026-01/', true],
    ['^[\\w\\-.@]+\\é$', '', 'a-b.c@é', true],
  ])('%s with the flags "%s" on %j is %s', (source, flags, text, expected) => {
    expect(compilePattern(source, flags).test(text)).toBe(expected);
  });

  it('matches as in JavaScript', () => {
    const atom = fc.constantFrom(
      ...[
        'a',
        'b',
        '.',
        '\\s',
        '\\S',
        '\\d',
        '\\w',
        '\\W',
        '\\b',
        '[ab]',
        '[^a\\s]',
        '[a-c\\d_-]',
        '\\.',
        '^',
        '$',
        '\\n',
      ],
      ...['-', '\\-', '/', '\\/', '"', ' ', '\\u00e9', 'é', '\\t', '[\\S]', '[\\W.]', '{', '}', ']', '{a}'],
    );
    const pattern = fc.letrec<{ node: string; group: string }>(tie => ({
      node: fc
        .array(fc.oneof({ weight: 4, arbitrary: atom }, { weight: 1, arbitrary: tie('group') }), {
          maxLength: 4,
        })
        .map(parts => parts.join('')),
      group: fc
        .tuple(
          fc.constantFrom('(', '(?:', '(?<x>'),
          tie('node'),
          tie('node'),
          fc.constantFrom('', '*', '+', '?', '{2}', '{0,2}', '*?', '{1,}?'),
        )
        .map(([open, left, right, quantifier]) => `${open}${left}|${right})${quantifier}`),
    })).node;
    const text = fc
      .array(
        fc.constantFrom('a', 'b', 'c', ' ', '\n', '\r', '1', '.', '-', '/', 'é', '\u00a0', '{', '}', ']'),
        {
          maxLength: 6,
        },
      )
      .map(characters => characters.join(''));
    fc.assert(
      fc.property(pattern, text, fc.constantFrom('', 'i', 's', 'is'), (source, subject, flags) => {
        let expected: RegExp;
        try {
          expected = new RegExp(source, flags);
        } catch {
          return;
        }
        expect(compilePattern(source, flags).test(subject)).toBe(expected.test(subject));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a pattern is refused', () => {
  it.each([
    ['^(?=a)b', 'uses look-around, `(?=` at character 2, which cannot be matched in linear time', 1, 4],
    ['a(?!b)', 'uses look-around, `(?!` at character 2, which cannot be matched in linear time', 1, 4],
    ['(?<=a)b', 'uses look-around, `(?<=` at character 1, which cannot be matched in linear time', 0, 4],
    ['(?<!a)b', 'uses look-around, `(?<!` at character 1, which cannot be matched in linear time', 0, 4],
    ['(a)\\1', 'uses a back-reference, `\\1` at character 4, which cannot be matched in linear time', 3, 5],
    [
      '(?<q>a)\\k<q>',
      'uses a back-reference, `\\k<q>` at character 8, which cannot be matched in linear time',
      7,
      12,
    ],
  ])('if it is %s', (source, message, start, end) => {
    const error = refusal(source);
    expect(error).toBeInstanceOf(PatternError);
    expect(error).toMatchObject({ message, start, end, hint: expect.stringMatching(/instead$/) });
  });

  it('if an escaped bracket only looks like look-around, it is accepted', () => {
    expect(compilePattern('\\(?=[(?=]').test('=(')).toBe(true);
  });

  it.each([
    ['a(', '', 'is not a valid regular expression: Unterminated group'],
    ['[a--b]', 'v', 'uses an operation on sets, `--` at character 3, which cannot be matched in linear time'],
    ['a{1001}', '', 'cannot be matched in linear time: invalid repeat count: `{1001}`'],
    ['\\p{Letter}', 'u', 'cannot be matched in linear time: invalid character class range: `\\p{Letter}`'],
  ])('if it is %s with the flags "%s"', (source, flags, message) => {
    expect(refusal(source, flags)).toMatchObject({ name: 'PatternError', message });
  });
});
