import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Expression, parseExpression } from './parse.ts';

/** Prints a tree with all parentheses. */
function outline(expression: Expression): string {
  switch (expression.kind) {
    case 'literal':
      return JSON.stringify(expression.value);
    case 'context':
      return expression.name;
    case 'property':
      return `${outline(expression.target)}.${expression.name}`;
    case 'index':
      return `${outline(expression.target)}[${outline(expression.index)}]`;
    case 'call':
      return `${expression.name}(${expression.args.map(outline).join(', ')})`;
    case 'not':
      return `!${outline(expression.operand)}`;
    case 'binary':
      return `(${outline(expression.left)} ${expression.operator} ${outline(expression.right)})`;
  }
}

function parsed(text: string): Expression {
  const result = parseExpression(text);
  if (result.kind === 'fault') throw new Error(result.fault.message);
  return result.expression;
}

test.each([
  ['a || b && c', '(a || (b && c))'],
  ['a && b || c', '((a && b) || c)'],
  ['(a || b) && c', '((a || b) && c)'],
  ['a == b && c != d', '((a == b) && (c != d))'],
  ['a < b == c >= d', '((a < b) == (c >= d))'],
  ['a == b == c', '((a == b) == c)'],
  ['!a == b', '(!a == b)'],
  ['!!a.b', '!!a.b'],
  ['!(a && b)', '!(a && b)'],
  ["a.b['c d'][0].e-f", 'a.b["c d"][0].e-f'],
  ["contains(a, 'x') && f()", '(contains(a, "x") && f())'],
  ["'it''s'", '"it\'s"'],
  ["''", '""'],
  ['-1.5e2', '-150'],
  ['0xff', '255'],
  ['+.5', '0.5'],
  ['NULL', 'null'],
  ['true && False', '(true && false)'],
  [' \n a \t', 'a'],
])('%j is parsed as %j', (text, expected) => {
  expect(outline(parsed(text))).toBe(expected);
});

describe('a syntax error', () => {
  test.each([
    ['', 0, 'the expression is empty'],
    ['a &&', 4, 'expected a value, found the end of the expression'],
    ['a b', 2, 'expected an operator or the end, found `b`'],
    ['a 5', 2, 'this is not a number'],
    ['(a', 2, 'expected `)`, found the end of the expression'],
    ['a)', 1, 'expected an operator or the end, found `)`'],
    ['f(a,)', 4, 'expected a value, found `)`'],
    ['a.', 2, 'expected the name of a property, found the end of the expression'],
    ['a.0', 2, 'expected the name of a property, found the number 0'],
    ['a[0', 3, 'expected `]`, found the end of the expression'],
    ["a == 'x", 5, 'the text has no closing quote'],
    ['a == "x"', 5, '" does not quote text in an expression'],
    ['a = b', 2, '`=` is not an operator'],
    ['a & b', 2, '`&` is not an operator'],
    ['a | b', 2, '`|` is not an operator'],
    ['1 + 2', 2, 'expressions have no arithmetic: `+`'],
    ['a.*.b', 2, '`*` is not supported in expressions'],
    ['1.2.3', 0, 'this is not a number'],
    ['a == €', 5, 'unexpected character "€" in an expression'],
  ])('in %j is reported at offset %i: %s', (text, start, message) => {
    const result = parseExpression(text);
    expect(result).toMatchObject({ kind: 'fault', fault: { message, start } });
  });
});

test.each([
  ['nested too deeply', `${'('.repeat(200)}a`, 'the expression is nested deeper than 100 levels'],
  ['too long', `a${' && a'.repeat(2000)}`, 'the expression has more than 2000 tokens'],
])('an expression that is %s is rejected instead of overflowing the stack', (_, text, message) => {
  expect(parseExpression(text)).toMatchObject({ kind: 'fault', fault: { message } });
});

test('offsets of an expression count from the base', () => {
  const result = parseExpression(" steps.a == 'x'", 100);
  expect(result).toMatchObject({ expression: { start: 101, end: 115, left: { start: 101, end: 108 } } });
});

test('any text parses to an expression or to a fault within its bounds', () => {
  const word = fc.constantFrom(
    'steps',
    '.',
    'a',
    '(',
    ')',
    '[',
    ']',
    "'",
    "'x'",
    '!',
    '==',
    '&&',
    '||',
    '<',
    ',',
    '1',
    '-',
    ' ',
    '"',
    '}}',
    '€',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(word).map(words => words.join('')),
      ),
      text => {
        const result = parseExpression(text);
        if (result.kind === 'expression') return;
        expect(result.fault.start).toBeGreaterThanOrEqual(0);
        expect(result.fault.start).toBeLessThanOrEqual(text.length);
      },
    ),
    { numRuns: 2000 },
  );
});
