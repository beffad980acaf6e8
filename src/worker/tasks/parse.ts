import { createHash } from 'node:crypto';
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import type { KnownNames } from '../parse-task.ts';
import type { Task, TaskList, TaskProblem } from '../task.ts';
import { readTaskFields, titleOf } from './fields.ts';
import { checkTaskGraph } from './task.ts';

export interface ListedBy extends KnownNames {
  /** As it was written. */
  readonly command: string;
}

/** The tasks that a command printed: a JSON array, or one JSON object a line. Never throws. */
export function parseListedTasks(printed: string, { command, known = [] }: ListedBy): TaskList {
  const by = `\`${command}\``;
  const { entries, problems: unread } = entriesOf(printed.replace(/^\uFEFF/, ''), by);
  const read = entries.map(({ value, place }) => readEntry(value, { by, place }));
  const broken = read.flatMap(one => (one.kind === 'task' ? [] : one.problems));
  const listed = read.flatMap(one => (one.kind === 'task' ? [one.task] : []));
  const graph = checkTaskGraph(listed, [...known, ...broken.flatMap(({ task }) => task ?? [])]);
  const together = graph.complaints.map(({ task, message, hint }) => ({
    message: `${by} lists \`${task.id}\`: ${message}`,
    hint,
    task: task.id,
  }));
  return { tasks: graph.tasks, problems: [...unread, ...broken, ...together] };
}

interface Entry {
  readonly value: Json;
  /** `entry 3` or `line 3`. */
  readonly place: string;
}

interface Entries {
  readonly entries: readonly Entry[];
  readonly problems: readonly TaskProblem[];
}

const howToList = 'print a JSON array of tasks and nothing else; what people should see belongs on stderr';

function entriesOf(text: string, by: string): Entries {
  const refuse = (message: string) => ({
    entries: [],
    problems: [{ message: `${by} ${message}`, hint: howToList }],
  });
  const whole = parseJson(text);
  if (whole === undefined) return linesOf(text, by) ?? refuse(notJson(text));
  if (isTask(whole)) return { entries: [{ value: whole, place: 'entry 1' }], problems: [] };
  if (isJsonObject(whole))
    return refuse(`did not print a list, but an object with the keys ${Object.keys(whole).join(', ')}`);
  if (!Array.isArray(whole)) return refuse(`did not print a list, but ${shown(text)}`);
  return { entries: whole.map((value, index) => ({ value, place: `entry ${index + 1}` })), problems: [] };
}

/** `undefined` if these are not lines of JSON at all. */
function linesOf(text: string, by: string): Entries | undefined {
  const lines = text
    .split('\n')
    .map((line, index) => ({ line, value: parseJson(line), place: `line ${index + 1}` }))
    .filter(({ line }) => line.trim() !== '');
  if (lines.length > 0 && !lines.some(({ value }) => isJsonObject(value))) return undefined;
  return {
    entries: lines.flatMap(({ value, place }) => (value === undefined ? [] : [{ value, place }])),
    problems: lines
      .filter(({ value }) => value === undefined)
      .map(({ line, place }) => ({ message: `${by}, ${place}: not JSON: ${shown(line)}`, hint: howToList })),
  };
}

const isTask = (value: Json): boolean => isJsonObject(value) && Object.hasOwn(value, 'id');

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** With the first line that no JSON goes on with; the parser says where it stopped only now and then. */
function notJson(text: string): string {
  const lines = text.split('\n');
  let [fits, breaks] = [0, lines.length];
  while (breaks - fits > 1) {
    const middle = Math.floor((fits + breaks) / 2);
    if (canGoOn(`${lines.slice(0, middle).join('\n')}\n`)) fits = middle;
    else breaks = middle;
  }
  return `did not print JSON: line ${breaks} is ${shown(lines[breaks - 1] ?? '')}`;
}

/** Whether more of it could make it whole. */
function canGoOn(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    const said = String(error);
    const [, position] = /at position (\d+)/.exec(said) ?? [];
    return /end of JSON input/.test(said) || Number(position) >= beginning.length;
  }
}

function shown(text: string): string {
  const line = text.trim().replace(/\s+/g, ' ');
  return line.length > 60 ? `\`${line.slice(0, 60)}…\`` : `\`${line}\``;
}

type ReadEntry =
  | { readonly kind: 'task'; readonly task: Task }
  | { readonly kind: 'problems'; readonly problems: readonly TaskProblem[] };

function readEntry(value: Json, { by, place }: { readonly by: string; readonly place: string }): ReadEntry {
  const refuse = (message: string, hint?: string): ReadEntry => ({
    kind: 'problems',
    problems: [{ message: `${by}, ${place}: ${message}`, hint }],
  });
  if (!isJsonObject(value)) return refuse(`a task must be an object, not ${shown(JSON.stringify(value))}`);
  const { id, body, ...rest } = value;
  const name = typeof id === 'number' ? String(id) : id;
  if (name === undefined || name === null || name === '')
    return refuse('the task has no `id`', exampleOf(value));
  if (typeof name !== 'string' || name.trim() !== name || hasControl(name))
    return refuse(`${shown(JSON.stringify(id))} cannot be the \`id\` of a task`, 'use one line of text');
  const about = (
    found: readonly { readonly message: string; readonly hint?: string | undefined }[],
  ): ReadEntry => ({
    kind: 'problems',
    problems: found.map(({ message, hint }) => ({
      message: `${by} lists \`${name}\`: ${message}`,
      hint,
      task: name,
    })),
  });
  if (typeof (body ?? '') !== 'string') return about([{ message: '`body` must be text' }]);
  const text = String(body ?? '')
    .replaceAll('\r\n', '\n')
    .trim();
  const read = readTaskFields(rest);
  if (read.kind === 'complaints') return about(read.complaints);
  const { title = titleOf(text), ...fields } = read.fields;
  if (title === undefined) return about([{ message: 'it has neither a `title` nor a `body`' }]);
  const written = { id: name, title, body: text, ...fields };
  return { kind: 'task', task: { ...written, version: versionOf(written) } };
}

const exampleOf = (value: JsonObject): string =>
  Object.hasOwn(value, 'number')
    ? 'rename `number` to `id`'
    : 'for example: {"id": "fix-readme", "title": "Fix the typo", "priority": "P1"}';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const hasControl = (text: string): boolean => /[\u0000-\u001f\u007f]/.test(text);

/** What is not written and what is written as the default are the same task. */
const versionOf = (task: Omit<Task, 'version'>): string =>
  createHash('sha256')
    .update(canonicalJson({ ...task, agent: task.agent ?? null, file: null }))
    .digest('hex');
