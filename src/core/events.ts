import { z } from 'zod';
import type { Json } from './json.ts';

/**
 * The history of a run: a gapless list of events. Every event that was ever written can be read for ever,
 * so a schema is only ever widened. Times stand in `at` alone: two runs that did the same work differ
 * nowhere else but in `runId`.
 *
 * Import types alone from here: the schemas load zod, which is slow to start.
 */

const json = z.custom<Json>(value => value !== undefined);
const name = z.string().min(1);

const errorData = z.strictObject({
  code: name,
  message: z.string(),
  hint: z.string().optional(),
  name: z.string().optional(),
  stack: z.string().optional(),
  exitCode: z.number().optional(),
});

/** The number of the `ctx` call, from 0, so that the same call finds its answer again after a resume. */
const wait = z.number().int().nonnegative();

/** What a timer is for: a sleep, the backoff before the next attempt, the end of what an attempt or step may take, or of a pause. */
const timer = z.union([wait, z.enum(['retry', 'attempt', 'step', 'pause'])]);

const count = z.number().int().nonnegative();

/** What sessions used up. `costUsd` is null when nobody knows it. */
const usage = z.strictObject({
  inputTokens: count,
  outputTokens: count,
  cachedTokens: count,
  costUsd: z.number().nonnegative().nullable(),
});

const denial = z.strictObject({ tool: name, message: z.string(), lineToAdd: z.string().optional() });

/** How one worker fared when the best was chosen. */
const candidate = z.strictObject({
  worker: count,
  passed: z.boolean(),
  score: z.number().optional(),
  reason: z.string().optional(),
});

/** What each event says beyond its envelope. `null` marks the ones that belong to the run and not to a step. */
const dataSchemas = {
  'run.started': z.strictObject({
    /** The version of this format. */
    format: z.literal(1),
    workflow: name,
    /** The file that defines it, relative to the project's root. */
    source: z.string().optional(),
    input: json,
    /** Paths of all steps in their stable topological order: the places of the canonical order. */
    steps: z.array(name),
    forkedFrom: z.strictObject({ run: name, step: name }).optional(),
    /** The commit that workspaces begin with, if a step works in one. */
    base: z.strictObject({ ref: name, commit: name }).optional(),
  }),
  'run.resumed': z.strictObject({
    /** Paths of steps whose earlier end no longer counts: they run again. */
    invalidated: z.array(name).optional(),
    /** The places of the canonical order, if the definition has other steps now. */
    steps: z.array(name).optional(),
  }),
  'run.completed': z.strictObject({ output: json }),
  'run.failed': z.strictObject({ error: errorData, step: name.optional() }),
  'run.cancelled': z.strictObject({ reason: z.string() }),
  'step.started': z.strictObject({
    fingerprint: name,
    /** The input of a child workflow. */
    input: json.optional(),
  }),
  'step.completed': z.strictObject({
    output: json,
    /** Files that it hands on; paths are relative to the project's root. */
    artifacts: z.array(z.strictObject({ name, path: name })).optional(),
  }),
  'step.failed': z.strictObject({
    error: errorData,
    /** What the workers of a fan-out came to. */
    output: json.optional(),
  }),
  'step.cancelled': z.strictObject({ reason: z.string(), output: json.optional() }),
  'step.skipped': z.strictObject({
    fingerprint: name,
    reason: z.enum(['condition', 'dependency', 'failure', 'cancelled']),
    /** The step that it was skipped for. */
    because: name.optional(),
  }),
  'step.retrying': z.strictObject({ error: errorData, delayMs: z.number().nonnegative() }),
  'step.interrupted': z.strictObject({}),
  'step.suspended': z.strictObject({
    on: z.enum(['timer', 'signal', 'approval']),
    wait,
    signal: name.optional(),
  }),
  /** A wait is over and the step goes on; its code may run again from the top. */
  'step.resumed': z.strictObject({}),
  /** A limit of its agent: the step goes on, in the same session, when the time has passed. */
  'step.paused': z.strictObject({ reason: z.string(), delayMs: z.number().nonnegative() }),
  /** The step has become so many workers. */
  'fanout.expanded': z.strictObject({
    kind: z.enum(['concurrency', 'matrix']),
    total: count,
    /** The values of each worker; absent if they are all the same. */
    items: z.array(json).optional(),
  }),
  'selection.made': z.strictObject({
    winner: count,
    by: z.enum(['gates', 'rank', 'judge']),
    candidates: z.array(candidate),
    reason: z.string().optional(),
  }),
  'workspace.created': z.strictObject({
    /** Relative to the project's root. */
    path: name,
    branch: name,
    /** The commit that it began with. */
    base: name,
    /** The first of its ports, and how many it has. */
    ports: z.strictObject({ first: count, size: count }).optional(),
  }),
  /** The work in it was committed. */
  'workspace.saved': z.strictObject({
    commit: name,
    /** Beyond the base. */
    commits: count,
    files: count,
    insertions: count,
    deletions: count,
  }),
  'session.started': z.strictObject({
    agent: name,
    kind: name,
    /** The number of the session within its attempt, from 0: rework adds one. */
    number: count,
    /** Known before the agent starts if it lets us choose. */
    sessionId: name.optional(),
    resumes: z.boolean().optional(),
  }),
  /** The agent has said which session it is. */
  'session.named': z.strictObject({ sessionId: name }),
  'session.ended': z.strictObject({
    outcome: z.enum(['ok', 'failed', 'cancelled', 'limit']),
    sessionId: name.optional(),
    usage,
    denials: z.array(denial).optional(),
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
    ]),
    onto: name,
    branch: name,
    /** Where `onto` stands now. */
    commit: name.optional(),
    commits: count.optional(),
    /** Where `onto` stood before. */
    from: name.optional(),
    /** Of the commits that landed, oldest first. */
    subjects: z.array(z.string()).optional(),
    message: z.string().optional(),
  }),
  /** Work that could not be landed was put on a branch of its own. */
  'landing.parked': z.strictObject({ branch: name, commit: name, message: z.string() }),
  /** An agent has said who goes on. */
  'transition.taken': z.strictObject({
    from: name,
    to: name,
    args: z.record(z.string(), z.string()).optional(),
    why: z.string().optional(),
  }),
  'timer.set': z.strictObject({ timer, ms: z.number().nonnegative() }),
  'timer.fired': z.strictObject({ timer }),
  'approval.requested': z.strictObject({ message: z.string(), choices: z.array(name).min(1) }),
  'approval.given': z.strictObject({
    choice: name,
    by: z.string().optional(),
    comment: z.string().optional(),
  }),
  'signal.received': z.strictObject({ name, payload: json, by: z.string().optional() }),
  'cancel.requested': z.strictObject({
    reason: z.string(),
    by: z.string().optional(),
    /** Ends the run as failed instead of cancelled. */
    error: errorData.optional(),
  }),
} as const;

export type EventType = keyof typeof dataSchemas;
export const eventTypes = Object.keys(dataSchemas) as readonly EventType[];

type DataOf<T extends EventType> = z.infer<(typeof dataSchemas)[T]>;

interface Envelope<T extends EventType> {
  readonly seq: number;
  readonly runId: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly type: T;
  /** Path of the step, such as `deploy` or, inside a child workflow, `deploy/build`; absent on events of the run. */
  readonly step?: string | undefined;
  /** Index of a fanned-out copy, from 0. */
  readonly worker?: number | undefined;
  /** From 1; a retry adds one, an interruption does not. */
  readonly attempt?: number | undefined;
  readonly data: DataOf<T>;
}

export type EventOf<T extends EventType> = Envelope<T>;
export type HistoryEvent = { [T in EventType]: Envelope<T> }[EventType];
/** An event before the store gave it its place. */
export type NewEvent = { [T in EventType]: Omit<Envelope<T>, 'seq' | 'runId' | 'at'> }[EventType];

/** What `parseEvent` checks by hand, and is tested against. */
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
 * For documentation: the schema of each event's data.
 * @public
 */
export const eventDataSchemas: Readonly<Record<EventType, z.ZodType>> = dataSchemas;
