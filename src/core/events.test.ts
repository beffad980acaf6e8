import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RepriseError } from './errors.ts';
import { type EventType, eventSchemas, eventTypes } from './events.ts';
import { checkEvent, parseEvent } from './parse-event.ts';
import { isRecord } from './schema.ts';

const error = { code: 'EXIT_NONZERO', message: '', hint: 'h', name: 'Error', stack: 's', exitCode: 1.5 };

/** Data of one event of each type, with all optional fields. */
const complete: Readonly<Record<EventType, Record<string, unknown>>> = {
  'run.started': {
    format: 1,
    workflow: 'w',
    source: 'w.yaml',
    input: {},
    steps: ['a'],
    forkedFrom: { run: 'r', step: 's' },
    base: { ref: 'main', commit: 'c' },
  },
  'run.resumed': { invalidated: ['a'], steps: [] },
  'run.suspended': { by: 'budget', reason: '', limit: { costUsd: 0.5, tokens: 1 }, error },
  'run.completed': { output: null },
  'run.failed': { error, step: 'a' },
  'run.cancelled': { reason: '' },
  'step.started': { fingerprint: 'f', input: [1] },
  'step.completed': { output: { __proto__: null, a: 1 }, artifacts: [{ name: 'a', path: 'p' }] },
  'step.failed': { error, output: 1 },
  'step.cancelled': { reason: 'r', output: null },
  'step.skipped': { fingerprint: 'f', reason: 'condition', because: 'a' },
  'step.retrying': { error, delayMs: 0.5 },
  'step.interrupted': {},
  'step.suspended': { on: 'signal', wait: 0, signal: 'go' },
  'step.resumed': {},
  'step.paused': { reason: '', delayMs: 0 },
  'fanout.expanded': { kind: 'matrix', total: 1, items: [{ a: 1 }] },
  'selection.made': {
    winner: 0,
    by: 'rank',
    candidates: [{ worker: 0, passed: true, score: -1.5, reason: '' }],
    reason: '',
  },
  'workspace.created': { path: 'p', branch: 'b', base: 'c', ports: { first: 20000, size: 10 } },
  'workspace.saved': { commit: 'c', commits: 1, files: 2, insertions: 3, deletions: 4 },
  'session.started': { agent: 'a', kind: 'claude', number: 0, sessionId: 's', resumes: true },
  'session.named': { sessionId: 's' },
  'session.ended': {
    outcome: 'ok',
    sessionId: 's',
    usage: { inputTokens: 1, outputTokens: 0, cachedTokens: 0, costUsd: null },
    denials: [{ tool: 'Bash', message: '', lineToAdd: '' }],
  },
  'work.checked': {
    passed: false,
    checks: [{ command: 'npm test', passed: false, exitCode: 1 }],
    error,
    rework: 1,
  },
  'landing.delivered': { branch: 'b', commit: 'c', remote: 'origin' },
  'landing.started': { onto: 'main', branch: 'b' },
  'landing.ended': {
    outcome: 'landed',
    onto: 'main',
    branch: 'b',
    commit: 'c',
    commits: 1,
    from: 'f',
    subjects: ['s'],
    message: '',
  },
  'landing.parked': { branch: 'b', commit: 'c', message: '' },
  'transition.taken': { from: 'a', to: 'b', args: { focus: 'tests' }, why: 'because' },
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

/** Values of every kind, including those at the limits of the rules. */
const edges: readonly unknown[] = [
  ...[undefined, null, true, '', 'x', [], {}, ['a'], [''], ['a', 1]],
  ...[0, -0, 1, -1, 0.5, -0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY],
  ...['retry', 'attempt', 'step', 'pause', 'timer', 'signal', 'approval'],
  ...['condition', 'dependency', 'failure', 'cancelled'],
  ...[error, { code: 'X', message: 'm' }, { run: 'r', step: 's' }],
];

const unknownKeys = ['x', '', 'constructor', '__proto__', 'worker', 'error'];

/** Yields copies of the event with one field removed, replaced or added, at any depth. */
function* changed(event: object): Generator<object> {
  for (const key of new Set([...Object.keys(event), ...unknownKeys])) {
    for (const value of edges) yield replace(event, key, value);
    const { [key]: inner, ...rest } = event as Readonly<Record<string, unknown>>;
    yield rest;
    if (Object.hasOwn(event, key) && isRecord(inner)) {
      for (const other of changed(inner)) yield replace(event, key, other);
    }
  }
}

/** Sets a field like `JSON.parse` does: `__proto__` is an ordinary key. */
const replace = (target: object, key: string, value: unknown): object =>
  Object.defineProperty({ ...target }, key, { value, enumerable: true, configurable: true, writable: true });

function accepts(raw: unknown, check: (raw: unknown) => unknown = checkEvent): boolean {
  try {
    check(raw);
    return true;
  } catch (thrown) {
    if ((thrown as RepriseError).code === 'HISTORY_INVALID') return false;
    throw thrown;
  }
}

describe('checkEvent', () => {
  it.each(eventTypes)('accepts a %s event to write if and only if its schema accepts it', type => {
    const schema = eventSchemas[type];
    expect(accepts(eventOf(type))).toBe(true);
    const misjudged = [...changed(eventOf(type))].filter(
      raw => accepts(raw) !== schema.safeParse(raw).success,
    );
    expect(misjudged).toEqual([]);
  });

  it('accepts an event with arbitrary data if and only if its schema accepts it', () => {
    const data = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(fc.constantFrom(...eventTypes), data, (type, more) => {
        const raw = { ...eventOf(type), data: { ...complete[type], ...more } };
        expect(accepts(raw)).toBe(eventSchemas[type].safeParse(raw).success);
      }),
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
  ])('throws with the reason for invalid event %#', (raw, message) => {
    expect(() => checkEvent(raw)).toThrow(message);
  });
});

/** Copies of the value with one more field in each of its maps. */
function* extended(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) for (const item of value) for (const more of extended(item)) yield [more];
  if (!isRecord(value)) return;
  yield { ...value, ofANewerVersion: 'x' };
  for (const [key, inner] of Object.entries(value))
    for (const more of extended(inner)) yield replace(value, key, more);
}

describe('parseEvent', () => {
  it.each(eventTypes)('accepts every %s event that may be written', type => {
    const misjudged = [...changed(eventOf(type))].filter(raw => accepts(raw) && !accepts(raw, parseEvent));
    expect(misjudged).toEqual([]);
  });

  it.each(eventTypes)('accepts fields of a newer version anywhere in a %s event', type => {
    const rejected = [...extended(eventOf(type))].filter(raw => !accepts(raw, parseEvent));
    expect(rejected).toEqual([]);
  });

  it('rejects a known field with the wrong type', () => {
    const usage = { inputTokens: 1.5, outputTokens: 0, cachedTokens: 0, costUsd: null };
    const raw = { ...eventOf('session.ended'), data: { outcome: 'ok', usage } };
    expect(() => parseEvent(raw)).toThrow('malformed session.ended event: data.usage');
  });
});
