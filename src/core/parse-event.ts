import { RepriseError } from './errors.ts';
import type { EventType, HistoryEvent } from './event.ts';
import {
  type Fields,
  fields,
  firstProblem,
  isRecord,
  json,
  map,
  name,
  names,
  number,
  numberFrom,
  oneOf,
  type Rule,
  text,
  wholeFrom,
} from './fields.ts';

const wait = wholeFrom(0);
const timerNames = oneOf('retry', 'attempt', 'step');
const timer: Rule = {
  expected: 'the number of a wait, retry, attempt or step',
  holds: value => wait.holds(value) || timerNames.holds(value),
};
const choices: Rule = {
  expected: 'a list of texts that is not empty',
  holds: value => names.holds(value) && (value as []).length > 0,
};

const error = map(
  fields({ code: name, message: text }, { hint: text, name: text, stack: text, exitCode: number }),
);

const envelope = fields(
  { seq: wholeFrom(1), runId: name, at: name, type: name, data: json },
  { step: name, worker: wait, attempt: wholeFrom(1) },
);

/** The schemas of `event.ts` once more, without zod; a test holds the two against each other. */
const dataFields: Readonly<Record<EventType, Fields>> = {
  'run.started': fields(
    { format: oneOf(1), workflow: name, input: json, steps: names },
    { source: text, forkedFrom: map(fields({ run: name, step: name })) },
  ),
  'run.resumed': fields({}, { invalidated: names, steps: names }),
  'run.completed': fields({ output: json }),
  'run.failed': fields({ error }, { step: name }),
  'run.cancelled': fields({ reason: text }),
  'step.started': fields({ fingerprint: name }, { input: json }),
  'step.completed': fields({ output: json }),
  'step.failed': fields({ error }),
  'step.cancelled': fields({ reason: text }),
  'step.skipped': fields(
    { fingerprint: name, reason: oneOf('condition', 'dependency', 'failure', 'cancelled') },
    { because: name },
  ),
  'step.retrying': fields({ error, delayMs: numberFrom(0) }),
  'step.interrupted': fields({}),
  'step.suspended': fields({ on: oneOf('timer', 'signal', 'approval'), wait }, { signal: name }),
  'step.resumed': fields({}),
  'timer.set': fields({ timer, ms: numberFrom(0) }),
  'timer.fired': fields({ timer }),
  'approval.requested': fields({ message: text, choices }),
  'approval.given': fields({ choice: name }, { by: text, comment: text }),
  'signal.received': fields({ name, payload: json }, { by: text }),
  'cancel.requested': fields({ reason: text }, { by: text, error }),
};

/** Checks an event that was read from a store or a file. Throws HISTORY_INVALID. */
export function parseEvent(raw: unknown): HistoryEvent {
  const type: unknown = isRecord(raw) ? raw['type'] : undefined;
  if (!isRecord(raw) || typeof type !== 'string' || !Object.hasOwn(dataFields, type)) {
    throw new RepriseError('HISTORY_INVALID', `unknown event type ${JSON.stringify(type) ?? 'undefined'}`, {
      hint: 'the history may come from a newer Reprise: upgrade, or check the store for damage',
    });
  }
  const problem =
    firstProblem(envelope, raw) ?? firstProblem(dataFields[type as EventType], raw['data'], 'data.');
  if (problem !== undefined) throw new RepriseError('HISTORY_INVALID', `malformed ${type} event: ${problem}`);
  return raw as unknown as HistoryEvent;
}
