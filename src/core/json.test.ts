import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copyJson } from './json.ts';

describe('copyJson', () => {
  it('returns an equal value that shares no object with the original', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), value => {
        const copied = copyJson(value);
        expect(JSON.stringify(copied)).toBe(JSON.stringify(value));
        const original = new Set(objectsIn(value));
        expect(objectsIn(copied).filter(object => original.has(object))).toEqual([]);
      }),
    );
  });

  it('copies a field named __proto__ as a field', () => {
    const copied = copyJson(JSON.parse('{"a":{"__proto__":{"x":1}}}'));
    expect(JSON.stringify(copied)).toBe('{"a":{"__proto__":{"x":1}}}');
    expect(Object.getPrototypeOf(copied.a)).toBe(Object.prototype);
  });
});

const objectsIn = (value: unknown): object[] =>
  typeof value === 'object' && value !== null ? [value, ...Object.values(value).flatMap(objectsIn)] : [];
