import type { z } from 'zod';
import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type JsonObject } from '../../core/json.ts';
import { type Fields, firstProblem, isRecord } from '../../core/schema.ts';

/** A file of JSON lines as it was read. */
export interface SourceFile {
  /** As it is to be called in messages. */
  readonly file: string;
  readonly text: string;
}

export interface SourceLine {
  /** Counts from 1. */
  readonly line: number;
  readonly text: string;
}

/** `cases/x/x.score:12`. */
export const placeText = (file: string, line: number): string => `${file}:${line}`;

/** Something is wrong at a line of a recorded file. */
export const invalidLine = (file: string, line: number, what: string, hint?: string): RepriseError =>
  new RepriseError('TAPE_INVALID', `${placeText(file, line)}: ${what}`, {
    position: { file, line, column: 1 },
    hint:
      hint ??
      'recorded files are not edited by hand: take it from version control again, or record the case anew',
  });

export function linesOf({ text }: SourceFile): readonly SourceLine[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((content, index) => ({ line: index + 1, text: content }));
}

/** The map that a line says. */
export function parseLine(file: string, { line, text }: SourceLine): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalidLine(file, line, `not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isRecord(value)) throw invalidLine(file, line, 'expected a map');
  return value;
}

interface HeaderRules {
  readonly kind: string;
  /** The versions that are read, by field: `format`, and what else both sides must agree on. */
  readonly versions: Readonly<Record<string, number>>;
  /** What to do to get the file anew. */
  readonly again: (header: Readonly<Record<string, unknown>>) => string;
  readonly known?: Fields;
}

/** The first line. Another version is refused before anything else in it is looked at. */
export function parseHeader(
  { file, text }: SourceFile,
  { kind, versions, again, known }: HeaderRules,
): Readonly<Record<string, unknown>> {
  const first = linesOf({ file, text })[0];
  if (!first) throw invalidLine(file, 1, `the file is empty; expected the header of a ${kind}`);
  const header = parseLine(file, first);
  if (header['kind'] !== kind) throw invalidLine(file, 1, `kind: expected "${kind}"`);
  for (const [field, readable] of Object.entries(versions)) {
    const found = header[field];
    if (found === readable) continue;
    const newer = typeof found === 'number' && found > readable;
    throw new RepriseError(
      'REPLAY_DIVERGED',
      `format version: ${placeText(file, 1)} is a ${kind} of ${field} ${JSON.stringify(found) ?? '(none)'}, and this Reprise reads ${field} ${readable}`,
      {
        position: { file, line: 1, column: 1 },
        hint: `${newer ? 'use the Reprise that made it, or ' : ''}record it again: ${again(header)}`,
      },
    );
  }
  const problem = known && firstProblem(known, header);
  if (problem !== undefined) throw invalidLine(file, 1, problem);
  return header;
}

/** One line of a file of JSON lines, and where it is. */
export interface PlacedLine {
  readonly file: string;
  /** From 1. */
  readonly number: number;
  readonly value: JsonObject;
}

/** Blank lines are left out; so is a last one that a crash cut off, if `tornEnd` is allowed. */
export function readLines(
  file: string,
  text: string,
  { tornEnd }: { readonly tornEnd: boolean },
): readonly PlacedLine[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index): PlacedLine[] => {
    const place = { file, number: index + 1 };
    if (line.trim() === '') return [];
    const value = parsed(line);
    if (isJsonObject(value)) return [{ ...place, value }];
    if (tornEnd && value === undefined && index === lines.length - 1) return [];
    throw invalid(place, value === undefined ? 'is not JSON' : 'is not a JSON object');
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

export const invalid = (
  { file, number }: Pick<PlacedLine, 'file' | 'number'>,
  problem: string,
  hint = 'record it again, or correct the line',
): RepriseError =>
  new RepriseError('TAPE_INVALID', `${file}:${number} ${problem}`, {
    hint,
    position: { file, line: number, column: 1 },
  });

/** The value, if it fits. Throws TAPE_INVALID with the place and all that is wrong. */
export function fitting<T>(schema: z.ZodType<T>, value: unknown, place: PlacedLine): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw invalid(place, issues.join('; '));
}
