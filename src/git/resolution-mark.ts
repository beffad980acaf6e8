import { join } from 'node:path';
import { parseRecord, readIfThere, replaceFile } from './files.ts';
import { removeIfThere } from './lock-file.ts';

/**
 * What was last begun in a workspace where conflicts are solved, written before it is done. A call that is repeated after
 * a crash finds what the first one did, instead of taking the next conflict for the solution of the last.
 */
export interface Mark<T> {
  /** The resolution from which it was gone on; `begin` if there was none. */
  readonly after: string;
  readonly value: T;
}

const fileOf = (gitDir: string): string => join(gitDir, 'reprise-resolution.json');

/** `T` is what this program wrote; anything else is no mark. */
export function readMark<T>(gitDir: string): Mark<T> | undefined {
  const { after, value } = parseRecord(readIfThere(fileOf(gitDir))) ?? {};
  return typeof after === 'string' && value !== undefined ? { after, value: value as T } : undefined;
}

export const writeMark = <T>(gitDir: string, mark: Mark<T>): void =>
  replaceFile(fileOf(gitDir), `${JSON.stringify(mark)}\n`);

export const removeMark = (gitDir: string): void => removeIfThere(fileOf(gitDir));
