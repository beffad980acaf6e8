import { describe, expect, test } from 'vitest';
import type { Json } from '../../core/json.ts';
import { type Given, resultOf } from './test-support.ts';

const given: Given = {
  inputs: {
    name: 'Ada',
    n: 3,
    yes: true,
    no: false,
    empty: '',
    nothing: null,
    list: ['a', 'B', 3],
    map: { 'a b': 1 },
  },
  steps: { plan: { outcome: 'success', conclusion: 'success', outputs: { files: ['x', 'y'] } } },
  env: { CI: '1' },
};

describe('operators as in GitHub Actions', () => {
  test.each<[string, Json]>([
    // Strings are compared case-insensitively.
    ["inputs.name == 'ADA'", true],
    ["inputs.name != 'ADA'", false],
    ["'a' < 'B'", true],
    ["'ß' == 'ss'", false],
    // Values of different types are compared as numbers.
    ["1 == '1'", true],
    ["1 == ' 1 '", true],
    ["255 == '0xFF'", true],
    ["null == ''", true],
    ['null == 0', true],
    ['true == 1', true],
    ["true == 'true'", false],
    ["'abc' == 0", false],
    ["'abc' < 1", false],
    ["'abc' >= 1", false],
    ["'10' > '9'", false],
    ["10 > '9'", true],
    ['2 <= 2', true],
    ['3 < 2', false],
    ['false < true', true],
    // Lists and maps are equal only to themselves.
    ['inputs.list == inputs.list', true],
    ["inputs.list == fromJSON('[]')", false],
    ['inputs.list == 0', false],
    ['inputs.list < 5', false],
    // Logical operators return an operand.
    ["inputs.empty || 'default'", 'default'],
    ["inputs.name || 'default'", 'Ada'],
    ["inputs.yes && 'then' || 'else'", 'then'],
    ["inputs.no && 'then' || 'else'", 'else'],
    ['inputs.nothing && 1', null],
    ['inputs.n && 0 && 1', 0],
    ['!inputs.empty', true],
    ['!inputs.map', false],
    ["!fromJSON('[]')", false],
    ['!!-0', false],
  ])('`%s` evaluates to %j', (text, expected) => {
    expect(resultOf(text, given)).toEqual(expected);
  });

  test('the right side is not evaluated if the left side decides', () => {
    expect(resultOf("false && fromJSON('broken')")).toBe(false);
    expect(resultOf("'x' || fromJSON('broken')")).toBe('x');
  });
});

describe('contexts', () => {
  test.each<[string, Json]>([
    ['steps.plan.outputs.files', ['x', 'y']],
    ['steps.plan.outputs.files[1]', 'y'],
    ["steps['plan'].outputs.files['0']", 'x'],
    ['steps.plan.outputs.files[7]', null],
    ['steps.plan.outputs.files[-1]', null],
    ["steps.plan.outputs.files['x']", null],
    ['steps.plan.outputs.missing.deeper[0]', null],
    ["inputs.map['a b']", 1],
    ['inputs.name.length', null],
    ['inputs.list.length', null],
    ['inputs.constructor', null],
    ['inputs.toString', null],
    ['env.CI', '1'],
  ])('`%s` evaluates to %j', (text, expected) => {
    expect(resultOf(text, given)).toEqual(expected);
  });
});

describe('functions', () => {
  test.each<[string, Json]>([
    ["contains('Hello', 'ELL')", true],
    ["contains('abc', null)", true],
    ["contains(inputs.list, 'b')", true],
    ["contains(inputs.list, '3')", true],
    ["contains(inputs.list, 'ab')", false],
    ["contains(inputs.map, 'a')", false],
    ["startsWith('Hello', 'he')", true],
    ["startsWith('Hello', 'lo')", false],
    ["endsWith('Hello', 'LO')", true],
    ["STARTSWITH(123, '12')", true],
    ["format('{0}-{1}-{0}', 'a', inputs.n)", 'a-3-a'],
    ["format('{{{0}}} {1}', 'x', inputs.list)", '{x} ["a","B",3]'],
    ["format('{0}', null)", ''],
    ["join(inputs.list, ' + ')", 'a + B + 3'],
    ['join(inputs.list)', 'a,B,3'],
    ["join('alone')", 'alone'],
    ['join(inputs.map)', ''],
    ["toJSON(fromJSON('[1,2]'))", '[\n  1,\n  2\n]'],
    ['toJSON(inputs.name)', '"Ada"'],
    ['fromJSON(\'{"a": [true]}\').a[0]', true],
    ['fromJSON(inputs.n)', 3],
  ])('`%s` evaluates to %j', (text, expected) => {
    expect(resultOf(text, given)).toEqual(expected);
  });

  test.each([
    ["fromJSON('{')", /not JSON: \{/],
    ["fromJSON('')", /not JSON: \(empty\)/],
    ["format('{1}', 'a')", /no value for `\{1\}`/],
    ["format('{', 'a')", /lone `\{`/],
    ["format('{x}', 'a')", /lone `\{`/],
  ])('`%s` fails with a reason', (text, message) => {
    expect(() => resultOf(text)).toThrowError(
      expect.objectContaining({ code: 'EXPRESSION_FAILED', message: expect.stringMatching(message) }),
    );
  });

  test.each([
    ['success', [true, false, false]],
    ['failure', [false, true, false]],
    ['cancelled', [false, false, true]],
    ['always', [true, true, true]],
  ])('%s() reads the status of the earlier steps', (name, expected) => {
    const statuses = ['success', 'failure', 'cancelled'] as const;
    expect(statuses.map(status => resultOf(`${name}()`, { status }))).toEqual(expected);
  });
});
