import { stripVTControlCharacters } from 'node:util';

/** Reorders or hides what follows; text from outside has no use for them in a terminal. */
const invisible = /[\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/gu;
const lineBreak = /\r\n|[\u0085\u2028\u2029]/gu;
/** Control characters but the line feed, and halves of characters. */
const harmful = /(?!\n)[\p{Cc}\p{Cs}]/gu;

/**
 * Text from outside (names, messages, output) that can be shown in any terminal: escape sequences are taken out, other
 * control characters replaced by a visible mark, tabs by blanks. Line feeds stay. Every view passes such text through here.
 */
export function safeText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(lineBreak, '\n')
    .replaceAll('\t', '  ')
    .replace(invisible, '')
    .replace(harmful, '\uFFFD');
}

/** The same on one line. Of a line that a program wrote over itself with carriage returns, what it wrote last. */
export function safeLine(text: string): string {
  const lines = text.trimEnd().split('\n');
  return safeText(lines.map(lastWritten).join(' ')).replaceAll('\n', ' ').trim();
}

/** A line that a program printed, with its indentation. */
export const safeOutput = (line: string): string =>
  safeText(lastWritten(line)).replaceAll('\n', ' ').trimEnd();

function lastWritten(line: string): string {
  const written = line.replace(/\r+$/, '');
  return written.slice(written.lastIndexOf('\r') + 1);
}

/** The first line of a message. */
export const firstLine = (text: string): string => safeLine(text.trimStart().split('\n', 1)[0] ?? '');

/** The lines of a message after the first, without empty ones at the ends. */
export function furtherLines(text: string): readonly string[] {
  const lines = text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => safeText(line).replaceAll('\n', ' ').trimEnd());
  const first = lines.findIndex(line => line !== '');
  return first === -1 ? [] : lines.slice(first);
}
