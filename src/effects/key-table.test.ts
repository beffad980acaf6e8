import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conflicts, type Keys } from './effect.ts';
import { KeyTable, ParkedEntries } from './key-table.ts';
import { Lane, LaneEntry } from './lane.ts';

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

const key = fc.constantFrom('a', 'b', 'a:', 'a:x', 'a:y', 'a:x:', 'a:x:1', 'b:', 'b:x', '');
const keys: fc.Arbitrary<Keys> = fc.record(
  { reads: fc.uniqueArray(key, { maxLength: 3 }), writes: fc.uniqueArray(key, { maxLength: 3 }) },
  { requiredKeys: [] },
);

describe('KeyTable', () => {
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

describe('ParkedEntries', () => {
  const entryWith = (entryKeys: Keys): LaneEntry =>
    new LaneEntry(
      new Lane('lane', undefined),
      { name: 'test.wait', span: 'short', keys: () => entryKeys, perform: () => {} },
      undefined,
      () => {},
    );
  const parked = fc.array(fc.record({ keys, isGone: fc.boolean() }), { maxLength: 8 });

  function park(all: readonly { readonly keys: Keys; readonly isGone: boolean }[]) {
    const table = new ParkedEntries();
    const entries = all.map(one => entryWith(one.keys));
    for (const entry of entries) table.add(entry);
    for (const [index, entry] of entries.entries()) if (all[index]?.isGone) table.delete(entry);
    return { table, left: entries.filter((_, index) => !all[index]?.isGone) };
  }

  it('finds an earlier entry if and only if one conflicts', () => {
    fc.assert(
      fc.property(parked, keys, (all, wanted) => {
        const { table, left } = park(all);
        const expected = left.some(earlier => conflicts(earlier.keys, wanted));
        expect(table.hasEarlier(entryWith(wanted), () => true)).toBe(expected);
        for (const [index, entry] of left.entries()) {
          const earlier = left.slice(0, index).some(other => conflicts(other.keys, entry.keys));
          expect(table.hasEarlier(entry, () => true)).toBe(earlier);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('concerns every entry that shares a key with the change, and those behind it at other keys', () => {
    fc.assert(
      fc.property(parked, keys, (all, changed) => {
        const { table, left } = park(all);
        const share = (a: Keys, b: Keys) =>
          conflicts(
            writing(...(a.reads ?? []), ...(a.writes ?? [])),
            writing(...(b.reads ?? []), ...(b.writes ?? [])),
          );
        const expected = new Set<LaneEntry>();
        let found = -1;
        while (found !== expected.size) {
          found = expected.size;
          for (const entry of left)
            if (share(entry.keys, changed) || [...expected].some(other => share(other.keys, entry.keys)))
              expected.add(entry);
        }
        const concerned = new Set<LaneEntry>();
        table.concernedBy(changed, concerned);
        for (const entry of left) if (share(entry.keys, changed)) expect(concerned.has(entry)).toBe(true);
        for (const entry of concerned) expect(expected.has(entry)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
