import type { z } from 'zod';
import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type JsonObject } from '../../core/json.ts';

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
