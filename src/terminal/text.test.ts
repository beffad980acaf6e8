import { describe, expect, it } from 'vitest';
import { jsonText } from './text.ts';

describe('JSON for a terminal', () => {
  it('escapes control characters and parses to the same value', () => {
    const value = { text: 'a\u009B31m\u202Eb\u001B[2J\u007Fc\u0007', 'k\u0090': ['\u2066'] };
    const text = jsonText(value);
    expect(text).toMatch(/^[ -~]*$/);
    expect(JSON.parse(text)).toEqual(value);
  });

  it('leaves ordinary text unchanged', () => {
    expect(jsonText({ a: 'Zürich 東京 🙂' })).toBe('{"a":"Zürich 東京 🙂"}');
    expect(jsonText({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
  });
});
