import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asData, differences, isSameData } from './compare.ts';

const roundTrip = (value: unknown): unknown => {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
};

/** Possible arguments of effects: JSON, and values that JSON omits or changes. */
const anything = fc.anything({ withDate: true, withNullPrototype: true, withSparseArray: true });

describe('comparison of data', () => {
  it('finds no difference between a value and its JSON', () => {
    fc.assert(
      fc.property(anything, value => {
        const data = roundTrip(value);
        expect(asData(value)).toEqual(data);
        expect(isSameData(data, value)).toBe(true);
        expect(differences(data, data, 'args')).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  it('finds a difference if and only if the data differs', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const isSame = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        expect(isSameData(roundTrip(a), b)).toBe(isSame);
        expect(differences(roundTrip(a), roundTrip(b), 'args').length > 0).toBe(!isSame);
      }),
      { numRuns: 1000 },
    );
  });

  it('accepts any text in place of a hidden secret', () => {
    const recorded = 'use <SECRET:A> and <SECRET:B>!';
    expect(isSameData({ a: recorded }, { a: 'use hunter2 and swordfish!' })).toBe(true);
    for (const other of [
      'use hunter2!',
      'use  and x!',
      'use hunter2 and swordfish',
      'we use x and y!',
      recorded.slice(1),
    ])
      expect(isSameData(recorded, other), other).toBe(false);
    expect(isSameData('plain', 'use <SECRET:A>')).toBe(false);
  });

  it('distinguishes a null field from an absent one', () => {
    expect(differences({ a: null }, {}, 'args')).toEqual(['args.a: recorded null, now nothing']);
    expect(differences([], [null], 'args')).toEqual(['args[0]: recorded nothing, now null']);
    expect(differences(undefined, null, 'args')).toEqual([]);
  });

  it('lists at most eight differences by their path', () => {
    expect(differences({ a: [1, { 'b c': 2 }], d: 1 }, { a: [1, { 'b c': 3 }, 4] }, 'args')).toEqual([
      'args.a[1]["b c"]: recorded 2, now 3',
      'args.a[2]: recorded nothing, now 4',
      'args.d: recorded 1, now nothing',
    ]);
    const many = Array.from({ length: 20 }, (_, index) => index);
    expect(
      differences(
        many,
        many.map(index => index + 1),
        'list',
      ).slice(7),
    ).toEqual(['list[7]: recorded 7, now 8', 'and 12 more']);
  });
});

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, field]) => [key, sorted(field)]);
  return { fields: fields.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)) };
};
