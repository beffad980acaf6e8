import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../core/json.ts';
import { expandMatrix, matrixFaults } from './matrix.ts';

describe('a matrix', () => {
  test('expands to every combination, with the first key varying slowest', () => {
    expect(expandMatrix({ os: ['linux', 'mac'], node: [20, 22] })).toEqual([
      { os: 'linux', node: 20 },
      { os: 'linux', node: 22 },
      { os: 'mac', node: 20 },
      { os: 'mac', node: 22 },
    ]);
  });

  test('may list its combinations', () => {
    expect(expandMatrix([{ a: 1 }, { b: 2 }])).toEqual([{ a: 1 }, { b: 2 }]);
  });

  test('is counted before it is expanded', () => {
    const ten = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    const axes = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`k${index}`, ten]));
    expect(matrixFaults(axes)).toMatchObject([
      { path: [], message: 'must have at most 10000 combinations, not 1000000000' },
    ]);
    expect(matrixFaults({ ...axes, k9: [] })).toEqual([]);
    expect(matrixFaults({ a: Array.from({ length: 10_000 }, (_, index) => index) })).toEqual([]);
    expect(matrixFaults({ a: Array(9999).fill(1), include: [{ b: 1 }, { b: 2 }] })).toMatchObject([
      { message: 'must have at most 10000 combinations, not 10001' },
    ]);
    expect(matrixFaults(Array(10_001).fill({}))).toMatchObject([
      { message: 'must have at most 10000 combinations, not 10001' },
    ]);
  });

  test('counts the lists that are known before the run', () => {
    const isPending = (value: Json) => value === '${{ x }}';
    expect(
      matrixFaults({ a: Array(200).fill(1), b: Array(200).fill(1), c: '${{ x }}' }, isPending),
    ).toMatchObject([{ message: 'must have at most 10000 combinations, not 40000' }]);
  });

  test('may not be compared with too many exclusions', () => {
    const matrix = { a: Array(10_000).fill(1), exclude: Array(1001).fill({ a: 2 }) };
    expect(matrixFaults(matrix)).toMatchObject([{ message: expect.stringContaining('too many entries') }]);
  });

  test('has no combinations if one of its lists is empty', () => {
    expect(expandMatrix({ os: [], node: [20] })).toEqual([]);
  });

  test('drops every combination that `exclude` matches fully or in part', () => {
    expect(
      expandMatrix({
        os: ['linux', 'mac'],
        node: [20, { version: 22, lts: true }],
        exclude: [{ os: 'mac', node: { lts: true, version: 22 } }, { node: 20 }],
      }),
    ).toEqual([{ os: 'linux', node: { version: 22, lts: true } }]);
  });

  // The example from GitHub's documentation.
  test('extends or adds combinations with `include`', () => {
    expect(
      expandMatrix({
        fruit: ['apple', 'pear'],
        animal: ['cat', 'dog'],
        include: [
          { color: 'green' },
          { color: 'pink', animal: 'cat' },
          { fruit: 'apple', shape: 'circle' },
          { fruit: 'banana' },
          { fruit: 'banana', animal: 'cat' },
        ],
      }),
    ).toEqual([
      { fruit: 'apple', animal: 'cat', color: 'pink', shape: 'circle' },
      { fruit: 'apple', animal: 'dog', color: 'green', shape: 'circle' },
      { fruit: 'pear', animal: 'cat', color: 'pink' },
      { fruit: 'pear', animal: 'dog', color: 'green' },
      { fruit: 'banana' },
      { fruit: 'banana', animal: 'cat' },
    ]);
  });

  test('may consist of `include` alone', () => {
    expect(expandMatrix({ include: [{ a: 1 }, { a: 1 }] })).toEqual([{ a: 1 }, { a: 1 }]);
  });

  test('expands any keys and values like a naive implementation', () => {
    const key = fc.constantFrom('a', 'b', 'c', '__proto__');
    const value = fc.constantFrom<Json>(1, 2, 'x', null, ['x'], { y: 1 });
    const axes = fc.dictionary(key, fc.array(value, { maxLength: 3 }), { maxKeys: 3 });
    const patterns = fc.array(
      fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e'), value, { maxKeys: 3 }),
      {
        maxLength: 4,
      },
    );
    fc.assert(
      fc.property(axes, patterns, patterns, (given, include, exclude) => {
        const known = exclude.filter(pattern =>
          Object.keys(pattern).every(name => Object.hasOwn(given, name)),
        );
        const matrix = { ...given, include, exclude: known } as JsonObject;
        expect(matrixFaults(matrix)).toEqual([]);
        expect(expandMatrix(matrix)).toEqual(naive(given, include, known));
      }),
    );
  });
});

type Lists = Readonly<Record<string, readonly Json[]>>;

/** Enumerates the combinations by number, then applies one rule after the other. */
function naive(axes: Lists, include: readonly JsonObject[], exclude: readonly JsonObject[]): JsonObject[] {
  const names = Object.keys(axes);
  const size =
    names.length === 0 ? 0 : names.reduce((product, name) => product * (axes[name]?.length ?? 0), 1);
  const originals: Map<string, Json>[] = [];
  for (let number = 0; number < size; number++) {
    let rest = number;
    const digits = new Map<string, Json>();
    for (const name of names.toReversed()) {
      const values = axes[name] ?? [];
      digits.set(name, values[rest % values.length] ?? null);
      rest = Math.floor(rest / values.length);
    }
    originals.push(new Map(names.map(name => [name, digits.get(name) ?? null])));
  }
  const same = (left: Json | undefined, right: Json) =>
    left !== undefined && canonicalJson(left) === canonicalJson(right);
  const kept = originals.filter(
    item =>
      !exclude.some(pattern => Object.entries(pattern).every(([name, value]) => same(item.get(name), value))),
  );
  const grown = kept.map(item => new Map(item));
  const extra: JsonObject[] = [];
  for (const addition of include) {
    const pairs = Object.entries(addition);
    const fitting = kept.flatMap((item, index) =>
      pairs.every(([name, value]) => !item.has(name) || same(item.get(name), value)) ? [index] : [],
    );
    for (const index of fitting) for (const [name, value] of pairs) grown[index]?.set(name, value);
    if (fitting.length === 0) extra.push(addition);
  }
  return [...grown.map(item => Object.fromEntries(item)), ...extra];
}

describe('an invalid matrix', () => {
  test.each<[Json, readonly string[]]>([
    ['linux', [' must be a map of lists, or a list of maps, not `linux`']],
    [null, [' must be a map of lists, or a list of maps, not empty']],
    [{ os: 'linux', node: { a: 1 } }, ['os must be a list, not `linux`', 'node must be a list, not a map']],
    [
      [{ a: 1 }, 'x', ['y']],
      ['1 must be a map, not `x`', '2 must be a map, not a list'],
    ],
    [{ include: { a: 1 } }, ['include must be a list, not a map']],
    [{ a: [1], include: ['x'] }, ['include.0 must be a map, not `x`']],
    [{ a: [1], exclude: [{ b: 1 }] }, ['exclude.0.b is not a key of the matrix, so it excludes nothing']],
  ])('%j is reported', (matrix, expected) => {
    expect(matrixFaults(matrix).map(({ path, message }) => `${path.join('.')} ${message}`)).toEqual(expected);
  });

  test('is not reported for values that are only known at run time', () => {
    const isPending = (value: Json) => value === '?';
    const matrix = { os: '?', include: '?', exclude: ['?', { os: 1 }] };
    expect(matrixFaults(matrix, isPending)).toEqual([]);
    expect(matrixFaults('?', isPending)).toEqual([]);
    expect(isJsonObject(matrix)).toBe(true);
  });
});
