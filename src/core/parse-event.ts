import { RepriseError } from './errors.ts';
import type { EventType, HistoryEvent } from './events.ts';
import {
  type Fields,
  fields,
  firstProblem,
  isName,
  isRecord,
  json,
  list,
  map,
  name,
  names,
  number,
  numberFrom,
  oneOf,
  type SchemaRule,
  text,
  texts,
  truth,
  type UnknownFields,
  wholeFrom,
} from './schema.ts';

const wait = wholeFrom(0);
const timerNames = oneOf('retry', 'attempt', 'step', 'pause');
const timer: SchemaRule = {
  expected: 'the number of a wait, retry, attempt, step or pause',
  holds: value => wait.holds(value) || timerNames.holds(value),
};
const choices: SchemaRule = {
  expected: 'a non-empty list of strings',
  holds: value => names.holds(value) && (value as []).length > 0,
};

const error = map(
  fields({ code: name, message: text }, { hint: text, name: text, stack: text, exitCode: number }),
);

const count = wholeFrom(0);
const amountOrNull: SchemaRule = {
  expected: 'a number from 0, or null',
  holds: value => value === null || numberFrom(0).holds(value),
};
const usage = map(
  fields({ inputTokens: count, outputTokens: count, cachedTokens: count, costUsd: amountOrNull }),
);
const denials = list(map(fields({ tool: name, message: text }, { lineToAdd: text })));
const candidates = list(map(fields({ worker: count, passed: truth }, { score: number, reason: text })));
const artifacts = list(map(fields({ name, path: name })));
const outcomes = oneOf(
  'landed',
  'nothing-to-land',
  'conflict',
  'verify-failed',
  'lost-the-race',
  'fenced',
  'main-checkout-in-the-way',
  'needs-approval',
);

const positive = wholeFrom(1);
const envelope = fields(
  { seq: positive, runId: name, at: name, type: name, data: json },
  { step: name, worker: wait, attempt: positive },
);

/** An event before it is checked. */
export interface EventParts {
  readonly seq?: unknown;
  readonly runId?: unknown;
  readonly at?: unknown;
  readonly type?: unknown;
  readonly step?: unknown;
  readonly worker?: unknown;
  readonly attempt?: unknown;
  readonly data?: unknown;
}

/** Whether all parts match `envelope`. Written by hand because it runs for every event and almost always succeeds. */
const areParts = ({ seq, runId, at, type, step, worker, attempt, data }: EventParts): boolean =>
  positive.holds(seq) &&
  isName(runId) &&
  isName(at) &&
  isName(type) &&
  data !== undefined &&
  (step === undefined || isName(step)) &&
  (worker === undefined || wait.holds(worker)) &&
  (attempt === undefined || positive.holds(attempt));

/** The schemas of `events.ts` without zod. A test checks that both accept the same events. */
const dataFields: Readonly<Record<EventType, Fields>> = {
  'run.started': fields(
    { format: oneOf(1), workflow: name, input: json, steps: names },
    {
      source: text,
      forkedFrom: map(fields({ run: name, step: name })),
      base: map(fields({ ref: name, commit: name })),
    },
  ),
  'run.resumed': fields({}, { invalidated: names, steps: names }),
  'run.suspended': fields(
    { by: oneOf('person', 'signal', 'budget', 'lock'), reason: text },
    { limit: map(fields({}, { costUsd: numberFrom(0), tokens: numberFrom(0) })), error },
  ),
  'run.completed': fields({ output: json }),
  'run.failed': fields({ error }, { step: name }),
  'run.cancelled': fields({ reason: text }),
  'step.started': fields({ fingerprint: name }, { input: json }),
  'step.completed': fields({ output: json }, { artifacts }),
  'step.failed': fields({ error }, { output: json }),
  'step.cancelled': fields({ reason: text }, { output: json }),
  'step.skipped': fields(
    { fingerprint: name, reason: oneOf('condition', 'dependency', 'failure', 'cancelled') },
    { because: name },
  ),
  'step.retrying': fields({ error, delayMs: numberFrom(0) }),
  'step.interrupted': fields({}),
  'step.suspended': fields({ on: oneOf('timer', 'signal', 'approval'), wait }, { signal: name }),
  'step.resumed': fields({}),
  'step.paused': fields({ reason: text, delayMs: numberFrom(0) }),
  'fanout.expanded': fields({ kind: oneOf('concurrency', 'matrix'), total: count }, { items: list(json) }),
  'selection.made': fields(
    { winner: count, by: oneOf('gates', 'rank', 'judge'), candidates },
    { reason: text },
  ),
  'workspace.created': fields(
    { path: name, branch: name, base: name },
    { ports: map(fields({ first: count, size: count })) },
  ),
  'workspace.saved': fields({
    commit: name,
    commits: count,
    files: count,
    insertions: count,
    deletions: count,
  }),
  'session.started': fields({ agent: name, kind: name, number: count }, { sessionId: name, resumes: truth }),
  'session.named': fields({ sessionId: name }),
  'session.ended': fields(
    { outcome: oneOf('ok', 'failed', 'cancelled', 'limit', 'suspended'), usage },
    { sessionId: name, denials, answer: map(fields({ text }, { structured: json })), error },
  ),
  'work.checked': fields(
    { passed: truth, checks: list(map(fields({ command: text, passed: truth }, { exitCode: number }))) },
    { error, rework: count },
  ),
  'landing.started': fields({ onto: name, branch: name }),
  'landing.ended': fields(
    { outcome: outcomes, onto: name, branch: name },
    { commit: name, commits: count, from: name, subjects: list(text), message: text },
  ),
  'landing.delivered': fields({ branch: name, commit: name }, { remote: name }),
  'landing.parked': fields({ branch: name, commit: name, message: text }),
  'transition.taken': fields({ from: name, to: name }, { args: texts, why: text }),
  'timer.set': fields({ timer, ms: numberFrom(0) }),
  'timer.fired': fields({ timer }),
  'approval.requested': fields(
    { message: text, choices },
    { branch: name, files: list(map(fields({ path: name, to: name }))), diff: text },
  ),
  'approval.given': fields({ choice: name }, { by: text, comment: text }),
  'signal.received': fields({ name, payload: json }, { by: text }),
  'cancel.requested': fields({ reason: text }, { by: text, error }),
};

const fieldsOfType: ReadonlyMap<string, Fields> = new Map(Object.entries(dataFields));
const types: ReadonlyMap<string, EventType> = new Map(
  Object.keys(dataFields).map(type => [type, type as EventType]),
);

/** Returns the string that all events of this type share: comparing it is cheaper than comparing copies. */
export const knownType = (type: unknown): EventType | undefined =>
  typeof type === 'string' ? types.get(type) : undefined;

/** Candidates for suggestions after a typo. */
export const knownTypes: readonly string[] = [...types.keys()];

/** Fast path for the two most frequent events without optional fields. */
function isPlainData(type: unknown, data: unknown): boolean {
  if (!isRecord(data)) return false;
  if (type === 'step.started') return isName(data.fingerprint) && hasNoOther(data, 'fingerprint');
  return type === 'step.completed' && json.holds(data.output) && hasNoOther(data, 'output');
}

function hasNoOther(data: Readonly<Record<string, unknown>>, key: string): boolean {
  for (const other in data) if (other !== key) return false;
  return true;
}

/** Validates an event that was read. Accepts fields that a newer version added. Throws HISTORY_INVALID. */
export function parseEvent(raw: unknown): HistoryEvent {
  checkParts(raw, 'accept');
  return raw as unknown as HistoryEvent;
}

/**
 * Validates an event that is about to be written: what `parseEvent` would reject must not get into a history. Throws
 * HISTORY_INVALID.
 */
export function checkEvent(raw: unknown): void {
  checkParts(raw, 'reject');
}

function checkParts(raw: unknown, unknown: UnknownFields): void {
  if (!isRecord(raw)) throw unknownType(undefined);
  const { type, data } = raw;
  const dataFields = fieldsOf(type);
  if (!dataFields) throw unknownType(type);
  const problem =
    (unknown === 'accept' && areParts(raw) ? undefined : firstProblem(envelope, raw, { unknown })) ??
    (isPlainData(type, data) ? undefined : firstProblem(dataFields, data, { path: 'data.', unknown }));
  if (problem !== undefined) throw malformed(type, problem);
}

const fieldsOf = (type: unknown): Fields | undefined =>
  typeof type === 'string' ? fieldsOfType.get(type) : undefined;

const unknownType = (type: unknown) =>
  new RepriseError('HISTORY_INVALID', `unknown event type ${JSON.stringify(type) ?? 'undefined'}`, {
    hint: 'the history may have been written by a newer version of Reprise: upgrade, or check the store for damage',
  });

const malformed = (type: unknown, problem: string) =>
  new RepriseError('HISTORY_INVALID', `malformed ${type} event: ${problem}`);
