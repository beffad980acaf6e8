import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RepriseError } from './errors.ts';
import { type EventType, eventSchemas, eventTypes } from './event.ts';
import { parseEvent } from './parse-event.ts';

const error = { code: 'EXIT_NONZERO', message: '', hint: 'h', name: 'Error', stack: 's', exitCode: 1.5 };

/** One event of each type with every field that it may have. */
const complete: Readonly<Record<EventType, Record<string, unknown>>> = {
  'run.started': {
    format: 1,
    workflow: 'w',
    source: 'w.yaml',
    input: {},
    steps: ['a'],
    forkedFrom: { run: 'r', step: 's' },
  },
  'run.resumed': { invalidated: ['a'], steps: [] },
  'run.completed': { output: null },
  'run.failed': { error, step: 'a' },
  'run.cancelled': { reason: '' },
  'step.started': { fingerprint: 'f', input: [1] },
  'step.completed': { output: { __proto__: null, a: 1 } },
  'step.failed': { error },
  'step.cancelled': { reason: 'r' },
  'step.skipped': { fingerprint: 'f', reason: 'condition', because: 'a' },
  'step.retrying': { error, delayMs: 0.5 },
  'step.interrupted': {},
  'step.suspended': { on: 'signal', wait: 0, signal: 'go' },
  'step.resumed': {},
  'timer.set': { timer: 'retry', ms: 0 },
  'timer.fired': { timer: 3 },
  'approval.requested': { message: '', choices: ['yes'] },
  'approval.given': { choice: 'yes', by: '', comment: '' },
  'signal.received': { name: 'go', payload: false, by: 'b' },
  'cancel.requested': { reason: '', by: 'b', error },
};

const eventOf = (type: EventType) => ({
  seq: 1,
  runId: 'r',
  at: 't',
  type,
  step: 's',
  worker: 0,
  attempt: 1,
  data: complete[type],
});

/** Values at the edges of what the rules say, of every kind. */
const value = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    '',
    'x',
    0,
    -0,
    1,
    -1,
    1.5,
    2 ** 53,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    true,
    [],
    {},
  ),
  fc.constantFrom<unknown>(
    'retry',
    'attempt',
    'step',
    'timer',
    'signal',
    'approval',
    'condition',
    'failure',
    ['a'],
    [''],
    ['a', 1],
  ),
  fc.constantFrom<unknown>(
    error,
    { ...error, code: '' },
    { code: 'X', message: 'm' },
    { run: 'r', step: 's' },
  ),
  fc.jsonValue(),
);

const keys = [
  'seq',
  'runId',
  'at',
  'type',
  'step',
  'worker',
  'attempt',
  'data',
  'format',
  'input',
  'steps',
  'output',
  'error',
  'reason',
  'fingerprint',
].concat([
  'timer',
  'ms',
  'wait',
  'on',
  'signal',
  'choices',
  'by',
  'code',
  'message',
  'exitCode',
  'run',
  'constructor',
  '__proto__',
  '',
]);

const change = fc.record({
  deep: fc.nat(2),
  pick: fc.nat(),
  other: fc.option(fc.constantFrom(...keys)),
  value: fc.option(value, { nil: 'remove' as const }),
});

/** The event with one field of it, of its data or of a map therein removed, replaced or added. */
function changed(
  event: object,
  { deep, pick, other, value }: { deep: number; pick: number; other: string | null; value: unknown },
): unknown {
  const own = Object.keys(event);
  const inner = own.filter(key => isMap(Reflect.get(event, key)));
  const into = deep > 0 ? inner[pick % inner.length] : undefined;
  const copy = { ...event };
  if (into !== undefined)
    set(copy, into, changed(Reflect.get(event, into), { deep: deep - 1, pick, other, value }));
  else {
    const key = other ?? own[pick % own.length] ?? 'x';
    if (value === 'remove') Reflect.deleteProperty(copy, key);
    else set(copy, key, value);
  }
  return copy;
}

const isMap = (given: unknown): given is object =>
  typeof given === 'object' && given !== null && !Array.isArray(given);

/** As JSON.parse does: `__proto__` is a key like any other. */
const set = (target: object, key: string, given: unknown) =>
  Object.defineProperty(target, key, { value: given, enumerable: true, configurable: true, writable: true });

function accepts(raw: unknown): boolean {
  try {
    expect(parseEvent(raw)).toBe(raw);
    return true;
  } catch (thrown) {
    expect((thrown as RepriseError).code).toBe('HISTORY_INVALID');
    return false;
  }
}

describe('an event that is read', () => {
  it.each(eventTypes)(
    'of type %s may have every field that its schema knows, and none but the required ones',
    type => {
      expect(accepts(eventOf(type))).toBe(true);
      for (const key of Object.keys(complete[type])) {
        const { [key]: _, ...rest } = complete[type];
        const raw = { ...eventOf(type), data: rest };
        expect(accepts(raw), `without ${key}`).toBe(eventSchemas[type].safeParse(raw).success);
      }
    },
  );

  it('is accepted exactly if its schema accepts it', () => {
    const event = fc.constantFrom(...eventTypes).map(eventOf);
    const altered = fc
      .tuple(event, fc.array(change, { minLength: 1, maxLength: 2 }))
      .map(([original, changes]) =>
        changes.reduce<unknown>((raw, next) => changed(raw as object, next), original),
      );
    fc.assert(
      fc.property(altered, raw => {
        const type: unknown = Reflect.get(raw as object, 'type');
        const schema =
          typeof type === 'string' && Object.hasOwn(eventSchemas, type)
            ? eventSchemas[type as EventType]
            : undefined;
        expect(accepts(raw)).toBe(schema?.safeParse(raw).success ?? false);
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    [{ ...eventOf('step.completed'), type: 'step.exploded' }, 'unknown event type "step.exploded"'],
    [
      { ...eventOf('step.completed'), attempt: 0 },
      'malformed step.completed event: attempt: expected a whole number from 1',
    ],
    [
      { ...eventOf('step.completed'), data: {} },
      'malformed step.completed event: data.output: expected a value',
    ],
    [
      { ...eventOf('step.completed'), data: { output: 1, x: 2 } },
      'malformed step.completed event: data.x: unknown field',
    ],
    [{ ...eventOf('step.completed'), data: [] }, 'malformed step.completed event: data: expected a map'],
    [null, 'unknown event type undefined'],
  ])('is refused with the reason: %#', (raw, message) => {
    expect(() => parseEvent(raw)).toThrow(message);
  });
});
