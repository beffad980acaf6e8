import { z } from 'zod';
import { isJsonObject, type Json } from '../../core/index.ts';
import { someText } from '../../workflow/yaml/index.ts';
import { type Complaint, explainIssues, schemaKeys } from '../../workflow/yaml/source/index.ts';
import { priorities, type Task, taskStates } from './task.ts';

/** Every key is nullish: a key without a value is the same as no key. */
const schema = z.strictObject({
  title: someText.nullish(),
  priority: z.enum(priorities).nullish(),
  state: z.enum(taskStates).nullish(),
  needs: z.union([someText, z.array(someText)], 'must be a task name in quotes, or a list of them').nullish(),
  agent: someText.nullish(),
});

export type TaskFields = Pick<Task, 'priority' | 'state' | 'needs' | 'agent'> & {
  readonly title: string | undefined;
};

export type ReadFields =
  | { readonly kind: 'fields'; readonly fields: TaskFields }
  | { readonly kind: 'complaints'; readonly complaints: readonly Complaint[] };

/** Reads the front matter of a task, or an entry of a list. Reports every mistake in it. */
export function readTaskFields(written: Json): ReadFields {
  const value = written ?? {};
  if (!isJsonObject(value)) return { kind: 'complaints', complaints: [notMap] };
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const keysAt = (parent: readonly (string | number)[]) =>
      schemaKeys(z.toJSONSchema(schema, { io: 'input' }) as Json, parent);
    const wording = { unknownKey: () => undefined, keysAt };
    return { kind: 'complaints', complaints: explainIssues(parsed.error.issues, value, wording) };
  }
  const { title, priority, state, needs, agent } = parsed.data;
  const fields = {
    title: title?.replace(/\s+/g, ' ').trim() || undefined,
    priority: priority ?? 'P2',
    state: state ?? 'ready',
    needs: typeof needs === 'string' ? [needs] : (needs ?? []),
    ...(agent ? { agent } : {}),
  };
  return { kind: 'fields', fields };
}

const notMap: Complaint = {
  path: [],
  message: 'the front matter must be a map of keys and values',
  hint: 'for example: `priority: P1`',
};

const longestTitle = 100;

/** First `#` heading of the text, or else its first line; `undefined` if the text is empty. */
export function titleOf(body: string): string | undefined {
  let inCode = false;
  const lines = body.split('\n').filter(line => {
    const isFence = /^ {0,3}(```|~~~)/.test(line);
    inCode = isFence ? !inCode : inCode;
    return !isFence && !inCode;
  });
  const heading = lines.find(line => /^ {0,3}#\s+\S/.test(line));
  const first = heading ?? lines.find(hasWords) ?? body.split('\n').find(hasWords);
  const plain = first
    ?.replace(/^\s*(#{1,6}|[-*+>]|\d+[.)])\s+/, '')
    .replace(/\s+#+\s*$/, '')
    .replace(/\s+/g, ' ')
    .trim();
  if (!plain || plain.length <= longestTitle) return plain;
  // Do not cut a surrogate pair in half.
  const cut = plain.slice(0, longestTitle - 1).replace(/[\uD800-\uDBFF]$/, '');
  return `${cut.trimEnd()}…`;
}

const hasWords = (line: string): boolean => /[\p{L}\p{N}]/u.test(line);
