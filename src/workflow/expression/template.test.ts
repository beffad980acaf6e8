import { describe, expect, test } from 'vitest';
import type { Json } from '../../core/json.ts';
import { evaluateTemplate, parseCondition, parseTemplate, readsStatus } from './template.ts';

const inputs = { n: 3, list: [1, 'a'], map: { k: null }, nothing: null, text: 'x', yes: true };

const rendered = (text: string): Json =>
  evaluateTemplate(parseTemplate(text), { status: 'success', read: () => inputs });

test.each<[string, Json]>([
  ['no expression', 'no expression'],
  ['', ''],
  ['${{ inputs.n }}', 3],
  ['${{inputs.list}}', [1, 'a']],
  ['${{ inputs.nothing }}', null],
  [' ${{ inputs.n }}', ' 3'],
  ['${{ inputs.n }}${{ inputs.text }}', '3x'],
  ['list: ${{ inputs.list }}, map: ${{ inputs.map }}', 'list: [1,"a"], map: {"k":null}'],
  ['<${{ inputs.nothing }}>', '<>'],
  ['<${{ inputs.yes }}>', '<true>'],
  ["${{ '}}' }} and ${{ '${{' }}", '}} and ${{'],
  ['$${{ inputs.n }} {{ x }}', '$3 {{ x }}'],
])('the template %j evaluates to %j', (text, expected) => {
  expect(rendered(text)).toEqual(expected);
});

test('a template reports every fault at its offset in the scalar', () => {
  expect(parseTemplate('a ${{ b c }} d ${{ = }} e ${{ f').faults).toMatchObject([
    { start: 8, message: 'expected an operator or the end, found `c`' },
    { start: 19, message: '`=` is not an operator' },
    { start: 26, message: '`${{` has no closing `}}`' },
  ]);
});

describe('a condition', () => {
  test.each(['inputs.a == 1', '${{ inputs.a == 1 }}', '  ${{ inputs.a == 1 }}\n'])('may be %j', text => {
    expect(parseCondition(text)).toMatchObject({ kind: 'condition', expression: { kind: 'binary' } });
  });

  test.each(['${{ inputs.a }} == 1', '${{ inputs.a }}${{ inputs.b }}', '', '${{ }}'])(
    'cannot be %j',
    text => {
      expect(parseCondition(text)).toMatchObject({ kind: 'faults', faults: [{}] });
    },
  );

  test.each([
    ['always()', true],
    ["inputs.a == 'x' && !(failure() || false)", true],
    ['contains(inputs.list, CANCELLED())', true],
    ["inputs.always == 'success()'", false],
  ])('%j calls a status function: %s', (text, expected) => {
    const parsed = parseCondition(text);
    expect(parsed.kind === 'condition' && readsStatus(parsed.expression)).toBe(expected);
  });
});
