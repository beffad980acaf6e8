import { expect, it } from 'vitest';
import { glyphsFor, isUtf8Locale, toStatusWord } from './glyphs.ts';
import { displayWidth } from './text.ts';

it('finds out about the locale as POSIX does', () => {
  expect(isUtf8Locale({ LANG: 'de_DE.UTF-8' })).toBe(true);
  expect(isUtf8Locale({ LANG: 'de_DE.UTF-8', LC_ALL: 'C' })).toBe(false);
  expect(isUtf8Locale({ LC_CTYPE: 'en_US.utf8', LANG: 'C' })).toBe(true);
  expect(isUtf8Locale({})).toBe(true);
});

it('has marks of one column, and plain ASCII where nothing else can be shown', () => {
  const { branch, spinner, ellipsis: _, after: __, join: ___, ...marks } = glyphsFor();
  expect([...Object.values(marks), ...spinner].every(mark => displayWidth(mark) === 1)).toBe(true);
  expect(Object.values(branch).every(mark => displayWidth(mark) === 2)).toBe(true);
  expect(JSON.stringify(glyphsFor(false))).toMatch(/^[\u0020-\u007E]*$/);
});

it('shows a suspended run as waiting, and what it does not know as pending', () => {
  expect(['suspended', 'failed', 'toString'].map(toStatusWord)).toEqual(['waiting', 'failed', 'pending']);
});
