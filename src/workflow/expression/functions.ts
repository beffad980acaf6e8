import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type Json } from '../../core/json.ts';
import type { Scope } from '../model.ts';
import { foldCase, isEqual, isPrimitive, toNumber, toText } from './values.ts';

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
export function member(target: Json, key: Json): Json {
  if (Array.isArray(target)) {
    const items: readonly Json[] = target;
    return items[Math.floor(toNumber(key))] ?? null;
  }
  const name = toText(key);
  return isJsonObject(target) && Object.hasOwn(target, name) ? (target[name] ?? null) : null;
}
