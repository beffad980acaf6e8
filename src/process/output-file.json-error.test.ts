import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonErrorOffset } from './output-file.ts';

// `^` marks the expected offset and is not part of the text.
test.each([
  '{"a": ^x}',
  '{^a: 1}',
  '{"a" ^1}',
  '{"a": 1,^}',
  '{"a": 1 ^"b": 2}',
  '[1,^]',
  '[1 ^2]',
  '[1]^]',
  '[0^1]',
  '[^-]',
  '[^undefined]',
  '[true^r]',
  '{"a": "b^\n"}',
  '["^\\x"]',
  '["ok \\u00e4 ^\\u12"]',
  '{"a": {"b": [1, {"c": null}]}^',
  '["open^',
  "{^'a': 1}",
])('finds the error at the mark: %j', marked => {
  const offset = marked.indexOf('^');
  expect(jsonErrorOffset(marked.replace('^', ''))).toBe(offset);
});

test('returns the length of valid JSON', () => {
  fc.assert(
    fc.property(fc.json(), text => {
      expect(jsonErrorOffset(text)).toBe(text.length);
    }),
  );
});

test('finds an inserted invalid character, or the start of the token that contains it', () => {
  const longestPrefix = '\\u123'.length;
  fc.assert(
    fc.property(fc.json(), fc.nat(), (text, at) => {
      const place = at % (text.length + 1);
      const offset = jsonErrorOffset(`${text.slice(0, place)}\u0001${text.slice(place)}`);
      expect(offset).toBeLessThanOrEqual(place);
      expect(place - offset).toBeLessThanOrEqual(longestPrefix);
    }),
  );
});
