import type { Json } from '../../core/json.ts';

/** The conversions and comparisons of GitHub Actions, where every expression has a value and few have errors. */

export const isPrimitive = (value: Json): value is null | boolean | number | string =>
  typeof value !== 'object' || value === null;

/** False are `false`, `0`, `''` and `null`; lists and maps are true, even empty ones. */
export const isTruthy = (value: Json): boolean => Boolean(value);

/** For interpolation: `null` is empty, lists and maps are JSON. */
export function toText(value: Json): string {
  if (value === null) return '';
  if (typeof value === 'object') return JSON.stringify(value);
  return Object.is(value, -0) ? '0' : String(value);
}

const decimal = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;
const otherBase = /^0(?:x[0-9a-f]+|o[0-7]+)$/i;

/** `NaN` for what is not a number. */
export function toNumber(value: Json): number {
  switch (typeof value) {
    case 'number':
      return value;
    case 'boolean':
      return value ? 1 : 0;
    case 'string': {
      const text = value.trim();
      if (text === '') return 0;
      return decimal.test(text) || otherBase.test(text) ? Number(text) : Number.NaN;
    }
    case 'object':
      return value === null ? 0 : Number.NaN;
  }
}

/** Texts are equal whatever their case; values of different types are compared as numbers; lists and maps by identity. */
export function isEqual(left: Json, right: Json): boolean {
  if (typeof left === 'string' && typeof right === 'string') return foldCase(left) === foldCase(right);
  if (!isPrimitive(left) || !isPrimitive(right) || typeof left === typeof right) return left === right;
  return toNumber(left) === toNumber(right);
}

/** Below 0, 0 or above 0; `undefined` if there is no order between the two. */
export function compare(left: Json, right: Json): number | undefined {
  if (typeof left === 'string' && typeof right === 'string') {
    const [a, b] = [foldCase(left), foldCase(right)];
    return a === b ? 0 : a < b ? -1 : 1;
  }
  const difference = toNumber(left) - toNumber(right);
  if (!Number.isNaN(difference)) return difference;
  // Two equal infinities have no difference, but an order.
  return toNumber(left) === toNumber(right) ? 0 : undefined;
}

/** Upper case, letter by letter: `ß` stays, so that it does not equal `ss`. */
export function foldCase(text: string): string {
  const upper = text.toUpperCase();
  if (upper.length === text.length) return upper;
  return Array.from(text, letter =>
    letter.toUpperCase().length === letter.length ? letter.toUpperCase() : letter,
  ).join('');
}
