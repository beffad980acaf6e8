import { expect, test } from 'vitest';
import { fingerprintOf } from './graph.ts';

test('a fingerprint is 16 hex digits', () => {
  expect(fingerprintOf({ run: 'ls' })).toMatch(/^[0-9a-f]{16}$/);
});

test('a fingerprint ignores the order of keys, but not of list items', () => {
  expect(fingerprintOf({ a: 1, b: { c: 2, d: 3 } })).toBe(fingerprintOf({ b: { d: 3, c: 2 }, a: 1 }));
  expect(fingerprintOf([1, 2])).not.toBe(fingerprintOf([2, 1]));
});

test('a fingerprint is the same in every version, so that an upgrade does not invalidate unfinished runs', () => {
  expect(fingerprintOf({ id: 'a', run: 'ls', retry: 3, optional: false, env: null })).toMatchInlineSnapshot(
    `"9d539426a1581e11"`,
  );
});
