import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

let written = 0;

/** A name beside the file that no other process or call uses. */
export const besideName = (file: string): string =>
  `${file}.${process.pid}.${process.hrtime.bigint()}.${written++}.tmp`;

/** Whoever reads the file sees it as it was or as it is, never a part. */
export function replaceFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const beside = besideName(file);
  writeFileSync(beside, text);
  renameSync(beside, file);
}

/** `undefined` if there is no such file; a folder is none. */
export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error) || hasCode(error, 'EISDIR')) return undefined;
    throw error;
  }
}

/** In a stable order; empty if there is no such folder. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** `undefined` if it is not a JSON object. */
export function parseRecord(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined;
  } catch {
    return undefined;
  }
}

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR');
