import { expect, it } from 'vitest';
import { glyphsFor, isUtf8Locale, toStatusWord } from './glyphs.ts';
import { displayWidth } from './text.ts';

it('reads the locale in the order that POSIX defines', () => {
  expect(isUtf8Locale({ LANG: 'de_DE.UTF-8' })).toBe(true);
  expect(isUtf8Locale({ LANG: 'de_DE.UTF-8', LC_ALL: 'C' })).toBe(false);
  expect(isUtf8Locale({ LC_CTYPE: 'en_US.utf8', LANG: 'C' })).toBe(true);
  expect(isUtf8Locale({})).toBe(true);
});

it('has marks that are one column wide, and an ASCII variant', () => {
  const { branch, spinner, ellipsis: _, after: __, join: ___, ...marks } = glyphsFor();
  expect([...Object.values(marks), ...spinner].every(mark => displayWidth(mark) === 1)).toBe(true);
  expect(Object.values(branch).every(mark => displayWidth(mark) === 2)).toBe(true);
  expect(JSON.stringify(glyphsFor(false))).toMatch(/^[\u0020-\u007E]*$/);
});

it('marks a suspended run as waiting and an unknown status as pending', () => {
  expect(['suspended', 'failed', 'toString'].map(toStatusWord)).toEqual(['waiting', 'failed', 'pending']);
});
