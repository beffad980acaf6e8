import type { PendingEffect } from '../conductor/scheduler.ts';
import type { EffectOutcome, Keys } from '../effect.ts';
import type { RecordedEntry } from '../recording/recording.ts';
import { tapedArgs, tapedOutcome } from '../tracer.ts';

/** Returns the value after a round trip through JSON, as on a tape. */
export function asData(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return scalar(value);
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}

const scalar = (value: unknown): unknown => {
  if (typeof value === 'number') return Number.isFinite(value) ? value || 0 : null;
  return typeof value === 'function' || typeof value === 'symbol' ? undefined : value;
};

/**
 * Whether the value, converted to JSON, equals the recorded data. Undefined fields count as absent, and a top-level
 * undefined equals null, because a line of JSON cannot tell them apart.
 */
export function isSameData(recorded: unknown, now: unknown): boolean {
  if (recorded === now) return true;
  if (typeof now === 'string' && typeof recorded === 'string') return isSameText(recorded, now);
  if (typeof now !== 'object' || now === null) return (recorded ?? null) === (scalar(now) ?? null);
  if (typeof recorded !== 'object' || recorded === null) return !isPlain(now) && recorded === asData(now);
  if (!isPlain(now)) return isSameData(recorded, asData(now));
  if (Array.isArray(now) || Array.isArray(recorded)) return isSameList(recorded, now);
  return hasSameFields(recorded as FieldMap, now as FieldMap);
}

/**
 * Whether the texts are equal except for hidden secrets. A secret that a run learned late is hidden in the whole
 * recording, but a replay knows it only from the same moment on.
 */
function isSameText(recorded: string, now: string): boolean {
  if (!recorded.includes('<SECRET:')) return false;
  const [first = '', ...others] = recorded.split(/<SECRET:[\w.-]+>/);
  const last = others.pop();
  if (last === undefined || !now.startsWith(first)) return false;
  let at = first.length;
  for (const piece of others) {
    const found = now.indexOf(piece, at + 1);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return now.length > at + last.length && now.endsWith(last);
}

type FieldMap = Readonly<Record<string, unknown>>;

/** Whether JSON keeps the object as it is: not a Date or another class with its own JSON form. */
const isPlain = (value: object): boolean => {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === Object.prototype || prototype === null) &&
    typeof (value as FieldMap)['toJSON'] !== 'function'
  );
};

const isSameList = (recorded: unknown, now: unknown): boolean =>
  Array.isArray(recorded) &&
  Array.isArray(now) &&
  recorded.length === now.length &&
  now.every((item, index) => isSameData(recorded[index], item));

function hasSameFields(recorded: FieldMap, now: FieldMap): boolean {
  let present = 0;
  for (const key in now) {
    if (isLeftOut(now[key])) continue;
    present++;
    if (!Object.hasOwn(recorded, key) || !isSameData(recorded[key], now[key])) return false;
  }
  for (const key in recorded) if (!isLeftOut(recorded[key])) present--;
  return present === 0;
}

const isLeftOut = (value: unknown): boolean =>
  value === undefined || typeof value === 'function' || typeof value === 'symbol';

/** Returns one line for each field that differs: `args.branch: recorded "main", now "dev"`. Both sides are data. */
export function differences(recorded: unknown, now: unknown, path: string): readonly string[] {
  if (isSameData(recorded, now)) return [];
  const found: string[] = [];
  collect(recorded, now, path, found);
  if (found.length <= mostShown) return found;
  return [...found.slice(0, mostShown), `and ${found.length - mostShown} more`];
}

const mostShown = 8;

function collect(recorded: unknown, now: unknown, path: string, found: string[]): void {
  // Within data, a null field differs from an absent one.
  const isMissing = (recorded === undefined) !== (now === undefined);
  if (!isMissing && isSameData(recorded, now)) return;
  if (Array.isArray(recorded) && Array.isArray(now)) {
    for (let index = 0; index < Math.max(recorded.length, now.length); index++)
      collect(recorded[index], now[index], `${path}[${index}]`, found);
  } else if (isFields(recorded) && isFields(now)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)]))
      collect(
        own(recorded, key),
        own(now, key),
        /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`,
        found,
      );
  } else {
    const from = firstDifference(recorded, now);
    found.push(`${path}: recorded ${shorten(recorded, from)}, now ${shorten(now, from)}`);
  }
}

const own = (fields: FieldMap, key: string): unknown =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;

const isFields = (value: unknown): value is FieldMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const longest = 80;

/** Index to show long strings from: shortly before their first difference. */
function firstDifference(a: unknown, b: unknown): number {
  if (typeof a !== 'string' || typeof b !== 'string') return 0;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return Math.max(a.length, b.length) <= longest ? 0 : Math.max(0, at - 20);
}

/** Formats a value on one line, truncated if it is long. */
function shorten(value: unknown, from = 0): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(typeof value === 'string' && from > 0 ? `…${value.slice(from)}` : value);
  return text.length <= longest ? text : `${text.slice(0, longest)}…`;
}

type Normalise = (value: unknown) => unknown;

interface RequestDifference {
  readonly what: 'arguments' | 'keys';
  readonly lines: readonly string[];
}

/**
 * Compares a request with the recording. Returns a line for each field that differs. Values that are already equal are
 * not normalized: recorded data is normalized, and normalizing is idempotent.
 */
export function requestDifference(
  pending: PendingEffect,
  recorded: RecordedEntry,
  normalise: Normalise,
): RequestDifference | undefined {
  const args = tapedArgs(pending);
  if (!isSameData(recorded.args, args)) {
    const lines = differences(recorded.args, normalise(asData(args)), 'args');
    if (lines.length > 0) return { what: 'arguments', lines };
  }
  if (isSameKeys(recorded.keys ?? {}, pending.keys)) return undefined;
  const now = normalise(asData(pending.keys)) as Keys;
  const lines = [
    ...differences(recorded.keys?.reads ?? [], now.reads ?? [], 'keys.reads'),
    ...differences(recorded.keys?.writes ?? [], now.writes ?? [], 'keys.writes'),
  ];
  return lines.length > 0 ? { what: 'keys', lines } : undefined;
}

const isSameKeys = (recorded: Keys, now: Keys): boolean =>
  isSameData(recorded.reads ?? none, now.reads ?? none) &&
  isSameData(recorded.writes ?? none, now.writes ?? none);

const none: readonly string[] = [];

/** Compares the outcome of an effect with the recording. Returns a line for each difference. */
export function outcomeDifferences(
  pending: PendingEffect,
  recorded: EffectOutcome,
  outcome: EffectOutcome,
  normalise: Normalise,
): readonly string[] {
  const now = tapedOutcome(pending.effect, outcome);
  if (recorded.kind !== now.kind) return [`end: recorded ${inWords(recorded)}, now ${inWords(now)}`];
  const path = recorded.kind === 'ok' ? 'result' : 'error';
  const before = comparable(recorded);
  const after = comparable(now);
  return isSameData(before, after) ? [] : differences(before, normalise(asData(after)), path);
}

/** Omits the stack of an error: source positions may change, the error itself may not. */
function comparable(outcome: EffectOutcome): unknown {
  switch (outcome.kind) {
    case 'ok':
      return outcome.value;
    case 'failed': {
      const { code, message, hint, exitCode } = outcome.error;
      return { code, message, hint, exitCode };
    }
    case 'cancelled':
      return null;
  }
}

const inWords = (outcome: EffectOutcome): string =>
  outcome.kind === 'failed' ? `failed with ${outcome.error.code}: ${outcome.error.message}` : outcome.kind;
