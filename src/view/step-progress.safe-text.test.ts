import { describe, expect, it } from 'vitest';
import { firstLine, furtherLines, safeLine, safeText } from './step-progress.ts';

describe('safeText', () => {
  it('removes colors, cursor movements, titles and links', () => {
    const link = '\u001B]8;;https://example.com\u0007here\u001B]8;;\u0007';
    expect(safeText(`\u001B[31mred\u001B[0m \u001B[2J\u001B[H${link} \u001B]0;title\u0007`)).toBe(
      'red here ',
    );
  });

  it('marks the remaining control characters', () => {
    expect(safeText('a\u0000b\u0008c\u009Bd\u007Fe\u001B')).toBe('a\uFFFDb\uFFFDc\uFFFDd\uFFFDe\uFFFD');
  });

  it('removes characters that change the direction of text or hide it', () => {
    expect(safeText('user\u202Etxt.exe\u2066\u200B')).toBe('usertxt.exe');
  });

  it('marks lone surrogates and keeps whole characters', () => {
    expect(safeText('\uD83D x 👍 日本 é')).toBe('\uFFFD x 👍 日本 é');
  });

  it('normalizes line breaks and replaces tabs', () => {
    expect(safeText('a\r\nb\u2028c\td')).toBe('a\nb\nc  d');
  });
});

describe('safeLine', () => {
  it('puts everything on one line', () => {
    expect(safeLine(' a\nb\u2029c \n')).toBe('a b c');
  });

  it('keeps the last state of a progress bar', () => {
    expect(safeLine('10%\r50%\r90%\r')).toBe('90%');
  });
});

it('splits a message into its first line and the rest', () => {
  expect(firstLine('exited with code 1\nlast\n  words\n')).toBe('exited with code 1');
  expect(furtherLines('exited with code 1\n\nlast\n  words\n')).toEqual(['last', '  words']);
  expect(furtherLines('boom')).toEqual([]);
});
