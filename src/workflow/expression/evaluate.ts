import { isJsonObject, type Json, RepriseError } from '../../core/index.ts';
import type { Scope } from '../model.ts';
import type { Binary, Expression } from './parse.ts';

export const contextNames = ['inputs', 'steps', 'env', 'matrix'] as const;
export type KnownContext = (typeof contextNames)[number];

export const isKnownContext = (name: string): name is KnownContext =>
  contextNames.some(known => known === name);

/** Values that an expression can read during evaluation. */
export interface EvaluationContext {
  readonly read: (context: KnownContext) => Json;
  readonly status: Scope['status'];
}

/** Evaluates a checked expression. Throws EXPRESSION_FAILED if a function fails. */
export function evaluate(expression: Expression, context: EvaluationContext): Json {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'context':
      return readContext(expression.name, context);
    case 'property':
      return member(evaluate(expression.target, context), expression.name);
    case 'index':
      return member(evaluate(expression.target, context), evaluate(expression.index, context));
    case 'call': {
      const args = expression.args.map(argument => evaluate(argument, context));
      const known = functionNamed(expression.name);
      if (!known) throw new RepriseError('EXPRESSION_FAILED', `unknown function \`${expression.name}\``);
      return known.call(args, context.status);
    }
    case 'not':
      return !isTruthy(evaluate(expression.operand, context));
    case 'binary':
      return evaluateBinary(expression, context);
  }
}

function readContext(name: string, context: EvaluationContext): Json {
  if (isKnownContext(name)) return context.read(name);
  throw new RepriseError('EXPRESSION_FAILED', `unknown context \`${name}\``);
}

function evaluateBinary({ operator, left, right }: Binary, context: EvaluationContext): Json {
  const first = evaluate(left, context);
  // These two short-circuit, and return an operand instead of a boolean.
  if (operator === '&&') return isTruthy(first) ? evaluate(right, context) : first;
  if (operator === '||') return isTruthy(first) ? first : evaluate(right, context);
  const second = evaluate(right, context);
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

// Conversions and comparisons follow GitHub Actions, where almost every expression has a value.

const isPrimitive = (value: Json): value is null | boolean | number | string =>
  typeof value !== 'object' || value === null;

/** `false`, `0`, `''` and `null` are falsy. Lists and maps are truthy, even if they are empty. */
export const isTruthy = (value: Json): boolean => Boolean(value);

/** Converts a value for interpolation: `null` becomes an empty text, lists and maps become JSON. */
export function toText(value: Json): string {
  if (value === null) return '';
  if (typeof value === 'object') return JSON.stringify(value);
  return Object.is(value, -0) ? '0' : String(value);
}

const decimal = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;
const otherBase = /^0(?:x[0-9a-f]+|o[0-7]+)$/i;

/** Returns `NaN` for a value that is not a number. */
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

/** Ignores the case of strings, compares different types as numbers, and compares lists and maps by identity. */
function isEqual(left: Json, right: Json): boolean {
  if (typeof left === 'string' && typeof right === 'string') return foldCase(left) === foldCase(right);
  if (!isPrimitive(left) || !isPrimitive(right) || typeof left === typeof right) return left === right;
  return toNumber(left) === toNumber(right);
}

/** Returns a negative number, 0 or a positive number, or `undefined` if the values have no order. */
function compare(left: Json, right: Json): number | undefined {
  if (typeof left === 'string' && typeof right === 'string') {
    const [a, b] = [foldCase(left), foldCase(right)];
    return a === b ? 0 : a < b ? -1 : 1;
  }
  const difference = toNumber(left) - toNumber(right);
  if (!Number.isNaN(difference)) return difference;
  // The difference of two equal infinities is NaN, although they are equal.
  return toNumber(left) === toNumber(right) ? 0 : undefined;
}

/** Converts to upper case letter by letter. Keeps `ß`, so that it does not equal `ss`. */
function foldCase(text: string): string {
  const upper = text.toUpperCase();
  if (upper.length === text.length) return upper;
  return Array.from(text, letter =>
    letter.toUpperCase().length === letter.length ? letter.toUpperCase() : letter,
  ).join('');
}

interface ExpressionFunction {
  /** Documented spelling. Calls may use any case. */
  readonly name: string;
  readonly minArguments: number;
  readonly maxArguments: number;
  /** If true, the function reads the status of earlier steps, which makes the needs of the step tolerant. */
  readonly readsStatus: boolean;
  readonly call: (args: readonly Json[], status: Scope['status']) => Json;
}

type PureFunction = (...args: readonly Json[]) => Json;

const pure = (
  name: string,
  [minArguments, maxArguments]: readonly [number, number],
  body: PureFunction,
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
        `format() found a lone \`${found}\` in '${pattern}'`,
        `write \`${found}${found}\` for a literal \`${found}\``,
      );
    }
    const value = values[Number(digits)];
    if (value === undefined)
      throw failed(`format() has no value for \`${found}\` in '${pattern}'`, 'the first value is `{0}`');
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
      `fromJSON() got a string that is not JSON: ${shown || '(empty)'}`,
      'make sure that the step prints only JSON',
    );
  }
}

const failed = (message: string, hint: string) => new RepriseError('EXPRESSION_FAILED', message, { hint });

/** Returns an own property of a map or an item of a list, or `null` if it does not exist. */
function member(target: Json, key: Json): Json {
  if (Array.isArray(target)) {
    const items: readonly Json[] = target;
    return items[Math.floor(toNumber(key))] ?? null;
  }
  const name = toText(key);
  return isJsonObject(target) && Object.hasOwn(target, name) ? (target[name] ?? null) : null;
}
