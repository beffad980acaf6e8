import { expect, it } from 'vitest';
import { displayWidth, filled, filledBefore, truncate } from './width.ts';

it('counts columns, not characters', () => {
  expect(['abc', 'é', 'e\u0301', '日本', '👍', 'ｶﾅ', '✓ …'].map(displayWidth)).toEqual([3, 1, 1, 4, 2, 2, 3]);
});

it('cuts to the column and never inside a character', () => {
  expect(truncate('abcdef', 6)).toBe('abcdef');
  expect(truncate('abcdef', 4)).toBe('abc…');
  expect(truncate('日本語', 4)).toBe('日…');
  expect(truncate('abcdef', 5, '...')).toBe('ab...');
  expect(truncate('abcdef', 0)).toBe('');
});

it('fills up on either side', () => {
  expect(`[${filled('日', 4)}][${filledBefore('1.2s', 6)}]`).toBe('[日  ][  1.2s]');
});
