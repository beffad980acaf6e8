import {
  type ErrorData,
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
} from '../../core/index.ts';
import type { EffectOutcome, Keys } from '../effect.ts';

/** Content of an entry in journals and on tapes, without its position. */
export interface EntryContent {
  readonly op: string;
  readonly keys?: Keys | undefined;
  readonly args?: unknown;
  readonly outcome?: EffectOutcome | undefined;
}

/** Returns `,"args":...`, or an empty string if there are none. */
export function argsJson(args: unknown): string {
  const pending = args === undefined ? undefined : valueJson(args);
  return pending === undefined ? '' : `,"args":${pending}`;
}

/** Avoids `JSON.stringify` for strings and undefined: it costs more than the rest of the line. */
const valueJson = (value: unknown): string | undefined =>
  typeof value === 'string' ? textJson(value) : value === undefined ? undefined : JSON.stringify(value);

/** Same result as `JSON.stringify`, which takes ten times as long for a short name. */
export const textJson = (text: string): string => (isPlain(text) ? `"${text}"` : JSON.stringify(text));

function isPlain(text: string): boolean {
  if (text.length > 100) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

/** Returns `,"keys":...`, or an empty string if there are none. */
export function keysJson(keys: Keys | undefined): string {
  if (!keys) return '';
  const reads = keys.reads?.length ? `"reads":${JSON.stringify(keys.reads)}` : '';
  const writes = keys.writes?.length ? `"writes":${JSON.stringify(keys.writes)}` : '';
  if (reads === '' && writes === '') return '';
  return `,"keys":{${reads}${reads && writes ? ',' : ''}${writes}}`;
}

/** Returns `,"ok":...`, `,"err":...` or `,"cancelled":true`. An undefined result is written as null. */
export function outcomeJson(outcome: EffectOutcome | undefined): string {
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

/** Omits the stack: lanes never see it, and it changes with every edit of the source. */
const errorJson = ({ code, message, hint, name, exitCode }: ErrorData): string =>
  JSON.stringify({ code, message, hint, name, exitCode });

/** Fields for the kind of an entry: the name of its effect and its keys. */
export const kindFields = {
  required: { op: text },
  optional: { keys: map(fields({}, { reads: names, writes: names })) },
} as const;

/** Fields for the arguments and the outcome. */
export const valueFields = {
  optional: {
    args: json,
    ok: json,
    err: map(fields({ code: text, message: text }, { hint: text, name: text, exitCode: number })),
    cancelled: truth,
  },
} as const;

/** Fields of an entry except its position. */
export const contentFields = {
  required: kindFields.required,
  optional: { ...kindFields.optional, ...valueFields.optional },
} as const;

const outcomeNames = ['ok', 'err', 'cancelled'] as const;

/** Describes the first problem of a line, if there is one. */
export function entryProblem(known: Fields, value: unknown): string | undefined {
  if (!isRecord(value)) return 'expected a map';
  const given = outcomeNames.filter(name => Object.hasOwn(value, name));
  if (given.length > 1) return `${given.join(' and ')}: only one of them is allowed`;
  if (value['cancelled'] === false) return 'cancelled: expected true';
  return firstProblem(known, value);
}

/** Returns the content of a valid line. */
export function contentOf(value: Readonly<Record<string, unknown>>): EntryContent {
  const outcome = outcomeOf(value);
  return {
    op: value['op'] as string,
    ...(Object.hasOwn(value, 'keys') ? { keys: value['keys'] as Keys } : {}),
    ...(Object.hasOwn(value, 'args') ? { args: value['args'] } : {}),
    ...(outcome ? { outcome } : {}),
  };
}

export function outcomeOf(value: Readonly<Record<string, unknown>>): EffectOutcome | undefined {
  if (Object.hasOwn(value, 'ok')) return { kind: 'ok', value: value['ok'] };
  if (Object.hasOwn(value, 'err')) return { kind: 'failed', error: value['err'] as ErrorData };
  return Object.hasOwn(value, 'cancelled') ? { kind: 'cancelled' } : undefined;
}
