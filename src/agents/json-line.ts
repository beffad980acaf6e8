import { isJsonObject, type Json, type JsonObject } from '../core/json.ts';

const longestRawLine = 2000;

/** The object that a line holds; `undefined` if it holds anything else. */
export function parseObject(line: string): JsonObject | undefined {
  if (!line.trimStart().startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A line as an event may carry it. */
export const rawEvent = (line: string) =>
  ({
    type: 'raw',
    line: line.length > longestRawLine ? `${line.slice(0, longestRawLine)}…` : line,
  }) as const;

/** Agents leave fields out, or fill them with something else, whenever they like: these never fail. */
export const at = (value: Json | undefined, ...path: readonly string[]): Json | undefined =>
  path.reduce<Json | undefined>(
    (inner, key) => (isJsonObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined),
    value,
  );

export const textAt = (value: Json | undefined, ...path: readonly string[]): string | undefined => {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : undefined;
};

export const numberAt = (value: Json | undefined, ...path: readonly string[]): number | undefined => {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : undefined;
};

export const listAt = (value: Json | undefined, ...path: readonly string[]): readonly Json[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** An entry of a record whose keys an agent chose: `constructor` is one like any other. */
export const own = <Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
