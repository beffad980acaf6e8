import type { z } from 'zod';
import {
  type Fields,
  firstProblem,
  isJsonObject,
  isRecord,
  type JsonObject,
  RepriseError,
} from '../../core/index.ts';

/** Content of a file of JSON lines. */
export interface SourceFile {
  /** Path for messages. */
  readonly file: string;
  readonly text: string;
}

export interface SourceLine {
  /** Line number, from 1. */
  readonly line: number;
  readonly text: string;
}

/** Returns `cases/x/x.score:12`. */
export const placeText = (file: string, line: number): string => `${file}:${line}`;

/** TAPE_INVALID for a line of a recorded file. */
export const invalidLine = (file: string, line: number, what: string, hint?: string): RepriseError =>
  new RepriseError('TAPE_INVALID', `${placeText(file, line)}: ${what}`, {
    position: { file, line, column: 1 },
    hint:
      hint ??
      'recorded files must not be edited by hand: restore the file from version control, or record the case again',
  });

export function linesOf({ text }: SourceFile): readonly SourceLine[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((content, index) => ({ line: index + 1, text: content }));
}

/** Parses a line that must be a map. Throws TAPE_INVALID. */
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
  /** Supported version by field: `format`, and others that both sides must agree on. */
  readonly versions: Readonly<Record<string, number>>;
  /** Returns the instruction that creates the file again, for messages. */
  readonly again: (header: Readonly<Record<string, unknown>>) => string;
  readonly known?: Fields;
}

/** Parses the first line. Checks the version before any other field. Throws TAPE_INVALID or REPLAY_DIVERGED. */
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
      `format version: ${placeText(file, 1)} is a ${kind} with ${field} ${JSON.stringify(found) ?? '(none)'}, but this version of Reprise reads ${field} ${readable}`,
      {
        position: { file, line: 1, column: 1 },
        hint: `${newer ? 'upgrade Reprise, or ' : ''}record it again: ${again(header)}`,
      },
    );
  }
  const problem = known && firstProblem(known, header);
  if (problem !== undefined) throw invalidLine(file, 1, problem);
  return header;
}

/** One line of a file of JSON lines, with its position. */
export interface PlacedLine {
  readonly file: string;
  /** Line number, from 1. */
  readonly number: number;
  readonly value: JsonObject;
}

/** Parses lines, without blank ones and, with `tornEnd`, a last one truncated by a crash. Throws TAPE_INVALID. */
export function readLines(
  file: string,
  text: string,
  { tornEnd }: { readonly tornEnd: boolean },
): readonly PlacedLine[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index): PlacedLine[] => {
    const position = { file, number: index + 1 };
    if (line.trim() === '') return [];
    const value = parsed(line);
    if (isJsonObject(value)) return [{ ...position, value }];
    if (tornEnd && value === undefined && index === lines.length - 1) return [];
    throw invalid(position, value === undefined ? 'is not JSON' : 'is not a JSON object');
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
  hint = 'record the case again, or fix the line',
): RepriseError =>
  new RepriseError('TAPE_INVALID', `${file}:${number} ${problem}`, {
    hint,
    position: { file, line: number, column: 1 },
  });

/** Validates a value. Throws TAPE_INVALID with the position and all problems. */
export function fitting<T>(schema: z.ZodType<T>, value: unknown, position: PlacedLine): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw invalid(position, issues.join('; '));
}
