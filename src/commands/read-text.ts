import { readFileSync } from 'node:fs';
import type { Problem } from '../workflow/problems.ts';

export interface TextFile {
  readonly file: string;
  /** For messages. */
  readonly displayFile: string;
  /** The error that says what is wrong with the file. */
  readonly refuse: (problem: Problem) => Error;
}

const lineFeed = 0x0a;

/** The text of a file. Throws what `refuse` gives if it is not UTF-8: a replaced character would change what it means. */
export function readText({ file, displayFile, refuse }: TextFile): string {
  const bytes = readFileSync(file);
  const text = decode(bytes);
  if (text !== undefined) return text;
  throw refuse({
    message: 'the file is not valid UTF-8',
    hint: 'save it as UTF-8',
    position: { file: displayFile, ...firstFault(bytes) },
  });
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** A line feed is never part of another character, so each line can be looked at alone. */
function firstFault(bytes: Uint8Array): { readonly line: number; readonly column: number } {
  for (let line = 1, start = 0; ; line++) {
    const found = bytes.indexOf(lineFeed, start);
    const end = found === -1 ? bytes.length : found;
    const content = bytes.subarray(start, end);
    if (found === -1 || decode(content) === undefined)
      return { line, column: new TextDecoder().decode(content).indexOf('\uFFFD') + 1 };
    start = end + 1;
  }
}
