import { RepriseError } from './errors.ts';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** `T` with properties that can be written: for code that builds a value before it hands it out. */
export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** JSON with sorted keys: equal values have equal text, regardless of the order of their keys. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (isJsonObject(value)) {
    const fields = Object.keys(value).sort();
    return `{${fields.map(key => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

/** Returns a deep copy of data. Values without parts are returned as they are. */
export function copyJson<T>(data: T): T;
export function copyJson(data: Readonly<Record<string, unknown>>): unknown {
  if (typeof data !== 'object' || data === null) return data;
  if (Array.isArray(data)) return data.map(item => copyJson(item));
  // An assignment to this name would set the prototype.
  if (Object.hasOwn(data, '__proto__'))
    return Object.fromEntries(Object.entries(data).map(([key, field]) => [key, copyJson(field)]));
  const copied: Record<string, unknown> = {};
  // Three times as fast as a loop over the entries.
  for (const key in data) copied[key] = copyJson(data[key]);
  return copied;
}

/**
 * Returns a deep copy, equal to the value after it was stored and read back.
 * Throws OUTPUT_INVALID, with the path, for values that JSON would silently change: a `Date`, a `Map`, `NaN`,
 * a function, a cycle. Fields that are `undefined` are omitted; a top-level `undefined` becomes `null`.
 */
export function toJson(value: unknown, path = 'output'): Json {
  return copy(value, path, []);
}

function copy(value: unknown, path: string, ancestors: object[]): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw unserialisable(path, String(value));
      return Object.is(value, -0) ? 0 : value;
    case 'undefined':
      return null;
    case 'bigint':
    case 'symbol':
    case 'function':
      throw unserialisable(path, `a ${typeof value}`);
    case 'object':
      return value === null ? null : copyObject(value, path, ancestors);
  }
}

function copyObject(value: object, path: string, ancestors: object[]): Json {
  if (ancestors.includes(value)) throw unserialisable(path, 'a reference to an object that contains it');
  ancestors.push(value);
  const copied = Array.isArray(value)
    ? value.map((item, index) => copy(item, `${path}[${index}]`, ancestors))
    : copyPlain(value, path, ancestors);
  ancestors.pop();
  return copied;
}

function copyPlain(value: object, path: string, ancestors: object[]): Json {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null) {
    throw unserialisable(path, `a ${value.constructor?.name ?? 'class instance'}`);
  }
  if (value instanceof Map || value instanceof Set || value instanceof Date || value instanceof Error) {
    throw unserialisable(path, `a ${value.constructor.name}`);
  }
  const entries: [string, Json][] = [];
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined) entries.push([key, copy(field, `${path}.${key}`, ancestors)]);
  }
  return Object.fromEntries(entries);
}

const unserialisable = (path: string, what: string) =>
  new RepriseError('OUTPUT_INVALID', `${path} is ${what}, which cannot be stored as JSON`, {
    hint: 'use plain objects, arrays, strings, finite numbers, booleans or null (for a date: date.toISOString())',
  });
