import { stripVTControlCharacters } from 'node:util';

/** Characters that reorder or hide text. */
const invisible = /[\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/gu;
const lineBreak = /\r\n|[\u0085\u2028\u2029]/gu;
/** Control characters except the line feed, and lone surrogates. */
const harmful = /(?!\n)[\p{Cc}\p{Cs}]/gu;

/**
 * Makes untrusted text (names, messages, output) safe for a terminal: removes escape sequences, and replaces other
 * control characters with a visible mark and tabs with spaces. Keeps line feeds. Every view passes untrusted text
 * through here.
 */
export function safeText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(lineBreak, '\n')
    .replaceAll('\t', '  ')
    .replace(invisible, '')
    .replace(harmful, '\uFFFD');
}

/** Like `safeText`, but on one line. If carriage returns overwrote a line, only the last version is kept. */
export function safeLine(text: string): string {
  const lines = text.trimEnd().split('\n');
  return safeText(lines.map(lastWritten).join(' ')).replaceAll('\n', ' ').trim();
}

/** Makes one output line of a program safe for a terminal, and keeps its indentation. */
export const safeOutput = (line: string): string =>
  safeText(lastWritten(line)).replaceAll('\n', ' ').trimEnd();

function lastWritten(line: string): string {
  const written = line.replace(/\r+$/, '');
  return written.slice(written.lastIndexOf('\r') + 1);
}

/** First line of a message. */
export const firstLine = (text: string): string => safeLine(text.trimStart().split('\n', 1)[0] ?? '');

/** Lines of a message after the first, without leading and trailing empty ones. */
export function furtherLines(text: string): readonly string[] {
  const lines = text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => safeText(line).replaceAll('\n', ' ').trimEnd());
  const first = lines.findIndex(line => line !== '');
  return first === -1 ? [] : lines.slice(first);
}
