import { expect, it } from 'vitest';
import { displayWidth, filled, filledBefore, nameFor, truncate, wrapped } from './text.ts';

it('measures columns, not characters', () => {
  expect(['abc', 'é', 'e\u0301', '日本', '👍', 'ｶﾅ', '✓ …'].map(displayWidth)).toEqual([3, 1, 1, 4, 2, 2, 3]);
});

it('truncates to the column and never inside a character', () => {
  expect(truncate('abcdef', 6)).toBe('abcdef');
  expect(truncate('abcdef', 4)).toBe('abc…');
  expect(truncate('日本語', 4)).toBe('日…');
  expect(truncate('abcdef', 5, '...')).toBe('ab...');
  expect(truncate('abcdef', 0)).toBe('');
});

it('pads on either side', () => {
  expect(`[${filled('日', 4)}][${filledBefore('1.2s', 6)}]`).toBe('[日  ][  1.2s]');
});

it('wraps text between words and truncates a word that is wider than a line', () => {
  expect(wrapped('commit it: git add issues/ && git commit', 20)).toEqual([
    'commit it: git add',
    'issues/ && git',
    'commit',
  ]);
  expect(wrapped('see 日本語日本語 now', 8)).toEqual(['see', '日本語…', 'now']);
});

it('gives a name a third of the line, and at least eight columns', () => {
  expect(nameFor('a-name-that-is-long', 30)).toBe('a-name-th…');
  expect(nameFor('worker-1', 10)).toBe('worker-1');
});
