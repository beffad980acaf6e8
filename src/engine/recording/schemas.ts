import { z } from 'zod';
import { objectToPath } from '../../core/index.ts';
import { sessionFormat } from './session-file.ts';

const json = z.json();
const text = z.string();
const count = z.int().nonnegative();
const optional = <T extends z.ZodType>(type: T) => type.optional();

const usageFields = {
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedTokens: z.number(),
  costUsd: z.number().nullable(),
};

const decision = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('allow') }),
  z.strictObject({ kind: z.literal('deny'), message: text, lineToAdd: optional(text) }),
]);

const error = z.strictObject({
  code: text,
  message: text,
  hint: optional(text),
  name: optional(text),
  stack: optional(text),
  exitCode: optional(z.number()),
});

/** Events of agents, by type. A missing `tool`, `input` or `id` of an end is that of an earlier line. */
export const eventSchemas = {
  started: z.strictObject({
    type: z.literal('started'),
    sessionId: text,
    model: optional(text),
    cwd: optional(text),
  }),
  'tool-start': z.strictObject({
    type: z.literal('tool-start'),
    id: text,
    name: text,
    input: json,
    title: optional(text),
  }),
  'tool-end': z.strictObject({
    type: z.literal('tool-end'),
    id: optional(text),
    ok: z.boolean(),
    output: optional(text),
  }),
  permission: z.strictObject({
    type: z.literal('permission'),
    id: text,
    tool: optional(text),
    input: optional(json),
    decision: optional(decision),
  }),
  usage: z.strictObject({ type: z.literal('usage'), ...usageFields }),
  retry: z.strictObject({
    type: z.literal('retry'),
    attempt: z.number(),
    delayMs: optional(z.number()),
    reason: text,
  }),
  limit: z.strictObject({ type: z.literal('limit'), resetsAt: optional(text), reason: text }),
  note: z.strictObject({ type: z.literal('note'), message: text }),
  raw: z.strictObject({ type: z.literal('raw'), line: text }),
} as const;

export const questionSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('permission'),
    id: text,
    tool: optional(text),
    input: optional(json),
    lineToAdd: optional(text),
  }),
  z.strictObject({ kind: z.literal('limit'), resetsAt: optional(text), error }),
]);

export const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('allow') }),
  z.strictObject({ kind: z.literal('deny'), message: optional(text) }),
  z.strictObject({ kind: z.literal('continue'), prompt: optional(text) }),
  z.strictObject({ kind: z.literal('stop') }),
]);

const soFar = {
  sessionId: optional(text.nullable()),
  usage: optional(z.strictObject(usageFields)),
  denials: optional(z.array(z.strictObject({ tool: text, message: text, lineToAdd: optional(text) }))),
};

export const resultSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('ok'),
    text: optional(text),
    said: optional(z.enum(['last', 'all'])),
    structured: optional(json),
    ...soFar,
  }),
  z.strictObject({ kind: z.literal('failed'), error, ...soFar }),
  z.strictObject({ kind: z.literal('cancelled'), ...soFar }),
  z.strictObject({ kind: z.literal('limit'), resetsAt: optional(text), error, ...soFar }),
]);

export const cutSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('timeout') }),
  z.strictObject({ kind: z.literal('budget'), message: text }),
  z.strictObject({ kind: z.literal('suspend') }),
]);

const tail = optional(
  z.union([text, z.strictObject({ lines: count, first: optional(text), open: optional(z.literal(true)) })]),
);

export const endSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('completed'), output: json, tail }),
  z.strictObject({ kind: z.literal('failed'), error, tail }),
  z.strictObject({ kind: z.literal('cancelled') }),
]);

const id = { role: text.min(1), task: text.min(1), n: count, cut: optional(count), order: count };

export const headerSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    format: z.literal(sessionFormat),
    kind: z.literal('session'),
    ...id,
    agent: z.strictObject({ name: text, kind: text, model: optional(text) }),
    resume: optional(z.literal(true)),
    next_key: optional(text),
    output_schema: optional(z.record(z.string(), json)),
    prompt: text,
    prompt_hash: text,
  }),
  z.strictObject({
    format: z.literal(sessionFormat),
    kind: z.literal('shell'),
    ...id,
    what: optional(text),
    command: z.strictObject({ script: text, shell: text, working_directory: text }),
  }),
]);

export const numberSchema = count;

/** Path inside a worktree, by the rule for `[files]` of a case. */
const path = text.superRefine((given, context) => {
  const objection = objectToPath(given, 'the worktree');
  if (objection)
    context.addIssue({ code: 'custom', message: `the path ${JSON.stringify(given)} ${objection}` });
});

const oid = text.regex(/^[0-9a-f]{40,64}$/, 'must be the id of a git object');

export const stateSchema = z.strictObject({
  head: z.strictObject({ commit: oid.nullable(), branch: text.nullable() }),
  tree: oid,
  index: z.strictObject({ tree: oid, intentToAdd: z.array(path) }),
  stashes: z.array(z.strictObject({ commit: oid, message: text })),
  emptyFolders: z.array(path),
  refs: z.record(text, oid.nullable()),
});

export const changedStateSchema = stateSchema.partial();

export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/, 'must be a sha256');
