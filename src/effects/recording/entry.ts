import type { ErrorData } from '../../core/errors.ts';
import {
  type Fields,
  fields,
  firstProblem,
  isRecord,
  json,
  map,
  names,
  number,
  text,
  truth,
} from '../../core/schema.ts';
import type { Keys, Outcome } from '../effect.ts';

/** What journals and tapes say of one entry, apart from its place. */
export interface EntryContent {
  readonly op: string;
  readonly keys?: Keys | undefined;
  readonly args?: unknown;
  readonly outcome?: Outcome | undefined;
}

/** `,"args":...`, or nothing if there are none. */
export function argsJson(args: unknown): string {
  const asked = args === undefined ? undefined : valueJson(args);
  return asked === undefined ? '' : `,"args":${asked}`;
}

/** Most values are a name, a number or nothing: a call of JSON costs more than all the rest of their line. */
const valueJson = (value: unknown): string | undefined =>
  typeof value === 'string' ? textJson(value) : value === undefined ? undefined : JSON.stringify(value);

/** The same as JSON.stringify, which takes ten times as long for a short name. */
export const textJson = (text: string): string => (isPlain(text) ? `"${text}"` : JSON.stringify(text));

function isPlain(text: string): boolean {
  if (text.length > 100) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

/** `,"keys":...`, or nothing if there are none. */
export function keysJson(keys: Keys | undefined): string {
  if (!keys) return '';
  const reads = keys.reads?.length ? `"reads":${JSON.stringify(keys.reads)}` : '';
  const writes = keys.writes?.length ? `"writes":${JSON.stringify(keys.writes)}` : '';
  if (reads === '' && writes === '') return '';
  return `,"keys":{${reads}${reads && writes ? ',' : ''}${writes}}`;
}

/** `,"ok":...`, `,"err":...` or `,"cancelled":true`. A result that is nothing is written as null. */
export function outcomeJson(outcome: Outcome | undefined): string {
  switch (outcome?.kind) {
    case undefined:
      return '';
    case 'ok':
      return `,"ok":${valueJson(outcome.value) ?? 'null'}`;
    case 'failed':
      return `,"err":${errorJson(outcome.error)}`;
    case 'cancelled':
      return ',"cancelled":true';
  }
}

/** Without the stack: a lane never gets to see it, and it changes with every line of the source. */
const errorJson = ({ code, message, hint, name, exitCode }: ErrorData): string =>
  JSON.stringify({ code, message, hint, name, exitCode });

/** What an entry is of: the name of an effect, and what it touches. */
export const kindFields = {
  required: { op: text },
  optional: { keys: map(fields({}, { reads: names, writes: names })) },
} as const;

/** What was asked and answered. */
export const valueFields = {
  optional: {
    args: json,
    ok: json,
    err: map(fields({ code: text, message: text }, { hint: text, name: text, exitCode: number })),
    cancelled: truth,
  },
} as const;

/** The fields of an entry beside those that say where it is. */
export const contentFields = {
  required: kindFields.required,
  optional: { ...kindFields.optional, ...valueFields.optional },
} as const;

const outcomeNames = ['ok', 'err', 'cancelled'] as const;

/** What is wrong with a line that was read, if anything. */
export function entryProblem(known: Fields, value: unknown): string | undefined {
  if (!isRecord(value)) return 'expected a map';
  const given = outcomeNames.filter(name => Object.hasOwn(value, name));
  if (given.length > 1) return `${given.join(' and ')}: only one of them can be`;
  if (value['cancelled'] === false) return 'cancelled: expected true';
  return firstProblem(known, value);
}

/** Of a line that has no problem. */
export function contentOf(value: Readonly<Record<string, unknown>>): EntryContent {
  const outcome = outcomeOf(value);
  return {
    op: value['op'] as string,
    ...(Object.hasOwn(value, 'keys') ? { keys: value['keys'] as Keys } : {}),
    ...(Object.hasOwn(value, 'args') ? { args: value['args'] } : {}),
    ...(outcome ? { outcome } : {}),
  };
}

export function outcomeOf(value: Readonly<Record<string, unknown>>): Outcome | undefined {
  if (Object.hasOwn(value, 'ok')) return { kind: 'ok', value: value['ok'] };
  if (Object.hasOwn(value, 'err')) return { kind: 'failed', error: value['err'] as ErrorData };
  return Object.hasOwn(value, 'cancelled') ? { kind: 'cancelled' } : undefined;
}
