import { z } from 'zod';
import type { Json } from './json.ts';

/**
 * The history of a run: a gapless list of events. Every event ever written must stay readable,
 * so schemas are only ever widened. Times occur only in `at`: the histories of two runs that did the same work
 * differ only in `at` and `runId`.
 *
 * Import only types from here: the schemas load zod, which takes time.
 */

const json = z.custom<Json>(
  value => value !== undefined && typeof value !== 'function' && typeof value !== 'symbol',
);
const name = z.string().min(1);

const errorData = z.strictObject({
  code: name,
  message: z.string(),
  hint: z.string().optional(),
  name: z.string().optional(),
  stack: z.string().optional(),
  exitCode: z.number().optional(),
});

/** Number of the `ctx` call, from 0. After a resume, the call looks up its answer by this number. */
const wait = z.number().int().nonnegative();

/** Purpose of a timer: a sleep, a retry backoff, the timeout of an attempt or a step, or the end of a pause. */
const timer = z.union([wait, z.enum(['retry', 'attempt', 'step', 'pause'])]);

const count = z.number().int().nonnegative();

/** Usage of sessions. `costUsd` is null if it is unknown. */
const usage = z.strictObject({
  inputTokens: count,
  outputTokens: count,
  cachedTokens: count,
  costUsd: z.number().nonnegative().nullable(),
});

const denial = z.strictObject({ tool: name, message: z.string(), lineToAdd: z.string().optional() });

/** Result of one copy of a step in the selection of the best. */
const candidate = z.strictObject({
  worker: count,
  passed: z.boolean(),
  score: z.number().optional(),
  reason: z.string().optional(),
});

/** Schema of the `data` of each event. */
const dataSchemas = {
  'run.started': z.strictObject({
    /** Version of this format. */
    format: z.literal(1),
    workflow: name,
    /** Path of the definition, relative to the project's root. */
    source: z.string().optional(),
    input: json,
    /** Paths of all steps in their stable topological order, which defines the canonical order of events. */
    steps: z.array(name),
    forkedFrom: z.strictObject({ run: name, step: name }).optional(),
    /** Commit that workspaces start from, if a step uses one. */
    base: z.strictObject({ ref: name, commit: name }).optional(),
  }),
  'run.resumed': z.strictObject({
    /** Paths of steps whose previous result is discarded: they run again. */
    invalidated: z.array(name).optional(),
    /** Paths of all steps, as in `run.started`, if the steps of the definition have changed. */
    steps: z.array(name).optional(),
  }),
  /** The run was stopped and can be resumed. Written before the process waits for its sessions to stop. */
  'run.suspended': z.strictObject({
    by: z.enum(['person', 'signal', 'budget', 'lock']),
    reason: z.string(),
    /** Limits that were in force when a budget was exhausted. */
    limit: z
      .strictObject({
        costUsd: z.number().nonnegative().optional(),
        tokens: z.number().nonnegative().optional(),
      })
      .optional(),
    /** Why the budget is exhausted, or which process holds the lock. */
    error: errorData.optional(),
  }),
  'run.completed': z.strictObject({ output: json }),
  'run.failed': z.strictObject({ error: errorData, step: name.optional() }),
  'run.cancelled': z.strictObject({ reason: z.string() }),
  'step.started': z.strictObject({
    fingerprint: name,
    /** Input of a child workflow. */
    input: json.optional(),
  }),
  'step.completed': z.strictObject({
    output: json,
    /** Files for later steps. Paths are relative to the project's root. */
    artifacts: z.array(z.strictObject({ name, path: name })).optional(),
  }),
  'step.failed': z.strictObject({
    error: errorData,
    /** Results of the copies of a fan-out. */
    output: json.optional(),
  }),
  'step.cancelled': z.strictObject({ reason: z.string(), output: json.optional() }),
  'step.skipped': z.strictObject({
    fingerprint: name,
    reason: z.enum(['condition', 'dependency', 'failure', 'cancelled']),
    /** Step that caused the skip. */
    because: name.optional(),
  }),
  'step.retrying': z.strictObject({ error: errorData, delayMs: z.number().nonnegative() }),
  'step.interrupted': z.strictObject({}),
  'step.suspended': z.strictObject({
    on: z.enum(['timer', 'signal', 'approval']),
    wait,
    signal: name.optional(),
  }),
  /** A wait is over and the step continues. Its code may run again from the top. */
  'step.resumed': z.strictObject({}),
  /** The agent hit a rate limit. The step continues in the same session after `delayMs`. */
  'step.paused': z.strictObject({ reason: z.string(), delayMs: z.number().nonnegative() }),
  /** The step was expanded into `total` copies. */
  'fanout.expanded': z.strictObject({
    kind: z.enum(['concurrency', 'matrix']),
    total: count,
    /** Matrix values of each copy. Absent if the copies are identical. */
    items: z.array(json).optional(),
  }),
  'selection.made': z.strictObject({
    winner: count,
    by: z.enum(['gates', 'rank', 'judge']),
    candidates: z.array(candidate),
    reason: z.string().optional(),
  }),
  'workspace.created': z.strictObject({
    /** Path relative to the project's root. */
    path: name,
    branch: name,
    /** Commit that the workspace started from. */
    base: name,
    /** First port reserved for the workspace, and the number of ports. */
    ports: z.strictObject({ first: count, size: count }).optional(),
  }),
  /** The work in the workspace was committed. */
  'workspace.saved': z.strictObject({
    commit: name,
    /** Number of commits beyond the base. */
    commits: count,
    files: count,
    insertions: count,
    deletions: count,
  }),
  'session.started': z.strictObject({
    agent: name,
    kind: name,
    /** Number of the session within its attempt, from 0. Rework adds one. */
    number: count,
    /** Present if the agent accepts an id chosen by the caller. */
    sessionId: name.optional(),
    resumes: z.boolean().optional(),
  }),
  /** The agent has reported the id of its session. */
  'session.named': z.strictObject({ sessionId: name }),
  'session.ended': z.strictObject({
    outcome: z.enum(['ok', 'failed', 'cancelled', 'limit', 'suspended']),
    sessionId: name.optional(),
    usage,
    denials: z.array(denial).optional(),
    /** Answer of the agent, so that its session is not repeated after a crash. */
    answer: z.strictObject({ text: z.string(), structured: json.optional() }).optional(),
    /** Error of a session that failed after it had started. */
    error: errorData.optional(),
  }),
  /** The answer of an agent was judged. Written if it is invalid or if the step has checks. */
  'work.checked': z.strictObject({
    passed: z.boolean(),
    /** Checks that ran, in order. The first one that fails is the last. */
    checks: z.array(
      z.strictObject({ command: z.string(), passed: z.boolean(), exitCode: z.number().optional() }),
    ),
    /** Why the answer is invalid or which check failed. */
    error: errorData.optional(),
    /** Number of the rework that follows, from 1. Absent if the agent is not asked again. */
    rework: count.optional(),
  }),
  'landing.started': z.strictObject({ onto: name, branch: name }),
  'landing.ended': z.strictObject({
    outcome: z.enum([
      'landed',
      'nothing-to-land',
      'conflict',
      'verify-failed',
      'lost-the-race',
      'fenced',
      'main-checkout-in-the-way',
      'needs-approval',
    ]),
    onto: name,
    branch: name,
    /** Head of `onto` after the landing. */
    commit: name.optional(),
    commits: count.optional(),
    /** Head of `onto` before the landing. */
    from: name.optional(),
    /** Subjects of the landed commits, oldest first. */
    subjects: z.array(z.string()).optional(),
    message: z.string().optional(),
  }),
  /** Finished work is on its branch, which was pushed and announced if the worker does that. */
  'landing.delivered': z.strictObject({ branch: name, commit: name, remote: name.optional() }),
  /** Work that could not land was kept on its own branch. */
  'landing.parked': z.strictObject({ branch: name, commit: name, message: z.string() }),
  /** An agent has named the next agent. */
  'transition.taken': z.strictObject({
    from: name,
    to: name,
    args: z.record(z.string(), z.string()).optional(),
    why: z.string().optional(),
  }),
  'timer.set': z.strictObject({ timer, ms: z.number().nonnegative() }),
  'timer.fired': z.strictObject({ timer }),
  'approval.requested': z.strictObject({
    message: z.string(),
    choices: z.array(name).min(1),
    /** Branch whose landing changes protected files. */
    branch: name.optional(),
    /** Protected files with their mode and object id after the change. */
    files: z.array(z.strictObject({ path: name, to: name })).optional(),
    /** Patch of these files, up to 20,000 characters. */
    diff: z.string().optional(),
  }),
  'approval.given': z.strictObject({
    choice: name,
    by: z.string().optional(),
    comment: z.string().optional(),
  }),
  'signal.received': z.strictObject({ name, payload: json, by: z.string().optional() }),
  'cancel.requested': z.strictObject({
    reason: z.string(),
    by: z.string().optional(),
    /** If present, the run ends as failed instead of cancelled. */
    error: errorData.optional(),
  }),
} as const;

export type EventType = keyof typeof dataSchemas;
export const eventTypes = Object.keys(dataSchemas) as readonly EventType[];

type DataOf<T extends EventType> = z.infer<(typeof dataSchemas)[T]>;

interface Envelope<T extends EventType> {
  readonly seq: number;
  readonly runId: string;
  /** Time in ISO 8601, UTC, with milliseconds. */
  readonly at: string;
  readonly type: T;
  /** Path of the step, such as `deploy` or, inside a child workflow, `deploy/build`. Absent on events of the run. */
  readonly step?: string | undefined;
  /** Index of a fanned-out copy, from 0. */
  readonly worker?: number | undefined;
  /** Number of the attempt, from 1. A retry adds one, an interruption does not. */
  readonly attempt?: number | undefined;
  readonly data: DataOf<T>;
}

export type EventOf<T extends EventType> = Envelope<T>;
export type HistoryEvent = { [T in EventType]: Envelope<T> }[EventType];
/** An event before the store assigns its sequence number, run id and time. */
export type NewEvent = { [T in EventType]: Omit<Envelope<T>, 'seq' | 'runId' | 'at'> }[EventType];

/** Reference schemas for the tests of `parseEvent`, which does the same checks by hand. */
export const eventSchemas = Object.fromEntries(
  eventTypes.map(type => [
    type,
    z.strictObject({
      seq: z.number().int().positive(),
      runId: name,
      at: name,
      type: z.literal(type),
      step: name.optional(),
      worker: z.number().int().nonnegative().optional(),
      attempt: z.number().int().positive().optional(),
      data: dataSchemas[type],
    }),
  ]),
) as unknown as Readonly<Record<EventType, z.ZodType>>;

/**
 * Schema of each event's data, for the generated reference.
 * @public
 */
export const eventDataSchemas: Readonly<Record<EventType, z.ZodType>> = dataSchemas;
