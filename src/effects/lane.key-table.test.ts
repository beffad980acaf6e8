import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conflicts, type Keys } from './effect.ts';
import { KeyTable } from './lane.ts';

const reading = (...reads: string[]): Keys => ({ reads });
const writing = (...writes: string[]): Keys => ({ writes });

describe('a key that ends with a colon', () => {
  it('covers all keys that start with it', () => {
    expect(conflicts(reading('claim:'), writing('claim:fix'))).toBe(true);
    expect(conflicts(writing('claim:fix'), reading('claim:'))).toBe(true);
    expect(conflicts(writing('claim:'), reading('claim:fix:deep'))).toBe(true);
    expect(conflicts(writing('claim:'), writing('claim:fix:'))).toBe(true);
  });

  it('does not make the keys that it covers conflict with each other', () => {
    expect(conflicts(writing('claim:fix'), writing('claim:other'))).toBe(false);
    expect(conflicts(reading('claim:'), reading('claim:fix'))).toBe(false);
  });

  it('does not cover a key that is merely similar', () => {
    expect(conflicts(reading('claim:'), writing('claim'))).toBe(false);
    expect(conflicts(reading('claim:'), writing('claims:fix'))).toBe(false);
    expect(conflicts(reading('claim'), writing('claim:fix'))).toBe(false);
  });
});

describe('KeyTable', () => {
  const key = fc.constantFrom('a', 'b', 'a:', 'a:x', 'a:y', 'a:x:', 'a:x:1', 'b:', 'b:x', '');
  const keys: fc.Arbitrary<Keys> = fc.record(
    { reads: fc.uniqueArray(key, { maxLength: 3 }), writes: fc.uniqueArray(key, { maxLength: 3 }) },
    { requiredKeys: [] },
  );
  const span = fc.constantFrom('short' as const, 'long' as const);
  const held = fc.array(fc.record({ keys, span, isReleased: fc.boolean() }), { maxLength: 5 });

  it('reports keys as free if and only if no holder conflicts with them', () => {
    fc.assert(
      fc.property(held, keys, (holders, wanted) => {
        const table = new KeyTable();
        for (const { keys: taken, span: length } of holders) table.take(taken, length);
        for (const { keys: released, span: length, isReleased } of holders)
          if (isReleased) table.give(released, length);
        const left = holders.filter(({ isReleased }) => !isReleased);
        expect(table.areFree(wanted)).toBe(!left.some(holder => conflicts(holder.keys, wanted)));
      }),
      { numRuns: 2000 },
    );
  });

  it('reports whether a long effect holds one of the keys', () => {
    fc.assert(
      fc.property(held, keys, (holders, wanted) => {
        const table = new KeyTable();
        for (const { keys: taken, span: length } of holders) table.take(taken, length);
        const all = ({ reads = [], writes = [] }: Keys) => [...reads, ...writes];
        const isHeld = holders.some(
          holder =>
            holder.span === 'long' && conflicts(writing(...all(holder.keys)), writing(...all(wanted))),
        );
        expect(table.areHeldForLong(wanted)).toBe(isHeld);
      }),
      { numRuns: 2000 },
    );
  });
});
