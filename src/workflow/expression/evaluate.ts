import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type Json } from '../../core/json.ts';
import type { Scope } from '../model.ts';
import type { Binary, Expression } from './parse.ts';

export const contextNames = ['inputs', 'steps', 'env', 'matrix'] as const;
export type KnownContext = (typeof contextNames)[number];

export const isKnownContext = (name: string): name is KnownContext =>
  contextNames.some(known => known === name);

/** What an expression can see while it is evaluated. */
export interface Surroundings {
  readonly read: (context: KnownContext) => Json;
  readonly status: Scope['status'];
}

/** The value of a checked expression. Throws EXPRESSION_FAILED where a function cannot go on. */
export function evaluate(expression: Expression, surroundings: Surroundings): Json {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'context':
      return readContext(expression.name, surroundings);
    case 'property':
      return member(evaluate(expression.target, surroundings), expression.name);
    case 'index':
      return member(evaluate(expression.target, surroundings), evaluate(expression.index, surroundings));
    case 'call': {
      const args = expression.args.map(argument => evaluate(argument, surroundings));
      const known = functionNamed(expression.name);
      if (!known) throw new RepriseError('EXPRESSION_FAILED', `there is no function \`${expression.name}\``);
      return known.call(args, surroundings.status);
    }
    case 'not':
      return !isTruthy(evaluate(expression.operand, surroundings));
    case 'binary':
      return evaluateBinary(expression, surroundings);
  }
}

function readContext(name: string, surroundings: Surroundings): Json {
  if (isKnownContext(name)) return surroundings.read(name);
  throw new RepriseError('EXPRESSION_FAILED', `there is no context \`${name}\``);
}

function evaluateBinary({ operator, left, right }: Binary, surroundings: Surroundings): Json {
  const first = evaluate(left, surroundings);
  // The two that may not need their right side, and give an operand instead of a boolean.
  if (operator === '&&') return isTruthy(first) ? evaluate(right, surroundings) : first;
  if (operator === '||') return isTruthy(first) ? first : evaluate(right, surroundings);
  const second = evaluate(right, surroundings);
  switch (operator) {
    case '==':
      return isEqual(first, second);
    case '!=':
      return !isEqual(first, second);
    case '<':
      return (compare(first, second) ?? 0) < 0;
    case '<=':
      return (compare(first, second) ?? 1) <= 0;
    case '>':
      return (compare(first, second) ?? 0) > 0;
    case '>=':
      return (compare(first, second) ?? -1) >= 0;
  }
}

/** The conversions and comparisons of GitHub Actions, where every expression has a value and few have errors. */

const isPrimitive = (value: Json): value is null | boolean | number | string =>
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
function toNumber(value: Json): number {
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
function isEqual(left: Json, right: Json): boolean {
  if (typeof left === 'string' && typeof right === 'string') return foldCase(left) === foldCase(right);
  if (!isPrimitive(left) || !isPrimitive(right) || typeof left === typeof right) return left === right;
  return toNumber(left) === toNumber(right);
}

/** Below 0, 0 or above 0; `undefined` if there is no order between the two. */
function compare(left: Json, right: Json): number | undefined {
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
function foldCase(text: string): string {
  const upper = text.toUpperCase();
  if (upper.length === text.length) return upper;
  return Array.from(text, letter =>
    letter.toUpperCase().length === letter.length ? letter.toUpperCase() : letter,
  ).join('');
}

interface ExpressionFunction {
  /** As it is written in documentation; calls may use any case. */
  readonly name: string;
  readonly minArguments: number;
  readonly maxArguments: number;
  /** Asks how the steps before went, which makes the needs of the step tolerant. */
  readonly readsStatus: boolean;
  readonly call: (args: readonly Json[], status: Scope['status']) => Json;
}

type Pure = (...args: readonly Json[]) => Json;

const pure = (
  name: string,
  [minArguments, maxArguments]: readonly [number, number],
  body: Pure,
): ExpressionFunction => ({
  name,
  minArguments,
  maxArguments,
  readsStatus: false,
  call: args => body(...args),
});

const statusFunction = (name: string, test: (status: Scope['status']) => boolean): ExpressionFunction => ({
  name,
  minArguments: 0,
  maxArguments: 0,
  readsStatus: true,
  call: (_, status) => test(status),
});

const all: readonly ExpressionFunction[] = [
  pure('contains', [2, 2], (container = null, item = null) => {
    if (Array.isArray(container)) return container.some(candidate => isEqual(candidate, item));
    return ofTexts(container, item, (text, part) => text.includes(part));
  }),
  pure('startsWith', [2, 2], (text = null, start = null) => ofTexts(text, start, (a, b) => a.startsWith(b))),
  pure('endsWith', [2, 2], (text = null, end = null) => ofTexts(text, end, (a, b) => a.endsWith(b))),
  pure('format', [1, Number.POSITIVE_INFINITY], (pattern = null, ...values) =>
    format(toText(pattern), values),
  ),
  pure('join', [1, 2], (items = null, separator = ',') => {
    if (Array.isArray(items)) return items.map(toText).join(isPrimitive(separator) ? toText(separator) : ',');
    return isPrimitive(items) ? toText(items) : '';
  }),
  pure('toJSON', [1, 1], (value = null) => JSON.stringify(value, null, 2)),
  pure('fromJSON', [1, 1], (text = null) => parseJson(toText(text))),
  statusFunction('success', status => status === 'success'),
  statusFunction('failure', status => status === 'failure'),
  statusFunction('cancelled', status => status === 'cancelled'),
  statusFunction('always', () => true),
];

const byName = new Map(all.map(entry => [entry.name.toLowerCase(), entry]));

export const functionNames: readonly string[] = all.map(({ name }) => name);

export const functionNamed = (name: string): ExpressionFunction | undefined => byName.get(name.toLowerCase());

function ofTexts(left: Json, right: Json, test: (left: string, right: string) => boolean): boolean {
  return isPrimitive(left) && isPrimitive(right) && test(foldCase(toText(left)), foldCase(toText(right)));
}

function format(pattern: string, values: readonly Json[]): string {
  return pattern.replace(/\{\{|\}\}|\{(\d+)\}|[{}]/g, (found, digits: string | undefined) => {
    if (found === '{{') return '{';
    if (found === '}}') return '}';
    if (digits === undefined) {
      throw failed(
        `format() does not understand the lone \`${found}\` in '${pattern}'`,
        `write \`${found}${found}\` for the sign itself`,
      );
    }
    const value = values[Number(digits)];
    if (value === undefined)
      throw failed(`format() has no value for \`${found}\` in '${pattern}'`, 'placeholders count from 0');
    return toText(value);
  });
}

function parseJson(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return value as Json;
  } catch {
    const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text;
    throw failed(
      `fromJSON() was given something that is not JSON: ${shown || '(nothing)'}`,
      'print JSON and nothing else',
    );
  }
}

const failed = (message: string, hint: string) => new RepriseError('EXPRESSION_FAILED', message, { hint });

/** The value of an own property of a map, or of an item of a list; `null` if there is none. */
function member(target: Json, key: Json): Json {
  if (Array.isArray(target)) {
    const items: readonly Json[] = target;
    return items[Math.floor(toNumber(key))] ?? null;
  }
  const name = toText(key);
  return isJsonObject(target) && Object.hasOwn(target, name) ? (target[name] ?? null) : null;
}
