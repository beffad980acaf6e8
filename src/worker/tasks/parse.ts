import { createHash } from 'node:crypto';
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { splitFrontMatter } from '../../agents/definitions.ts';
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../../core/index.ts';
import type { Problem } from '../../workflow/index.ts';
import {
  type Complaint,
  isTooDeep,
  keyText,
  LineIndex,
  ProblemList,
  YamlSource,
} from '../../workflow/yaml/source/index.ts';
import { readTaskFields, titleOf } from './fields.ts';
import {
  checkTaskGraph,
  type GraphComplaint,
  type Task,
  type TaskList,
  type TaskProblem,
  type TaskState,
} from './task.ts';

interface TaskFile {
  /** Path relative to the root of the repository. */
  readonly file: string;
  /** Path shown in messages. Defaults to `file`. */
  readonly displayFile?: string | undefined;
  readonly text: string;
  readonly version: string;
}

type ParsedTask =
  | { readonly kind: 'task'; readonly task: Task }
  | { readonly kind: 'problems'; readonly problems: readonly TaskProblem[] };

/** Parses a Markdown task file. Never throws. */
export function parseTask(file: TaskFile): ParsedTask {
  const read = readTask(file);
  return read.kind === 'task' ? { kind: 'task', task: read.task } : read;
}

interface KnownNames {
  /** Ids that `needs` may name although no task has them any more, because there is a claim on them. */
  readonly known?: Iterable<string> | undefined;
}

/** Parses all task files of a folder. Reports the problems of each task and of their dependencies. Never throws. */
export function parseTasks(files: readonly TaskFile[], { known = [] }: KnownNames = {}): TaskList {
  const read = files.map(readCached);
  const sources = new Map(read.flatMap(one => (one.kind === 'task' ? [[one.task, one.source]] : [])));
  const broken = read.flatMap(one => (one.kind === 'task' ? [] : one.problems));
  const graph = checkTaskGraph([...sources.keys()], [...known, ...broken.map(({ task }) => task)]);
  const together = graph.complaints.map(complaint => located(complaint, sources.get(complaint.task)));
  return { tasks: graph.tasks, problems: [...broken, ...together] };
}

function located({ task, ...complaint }: GraphComplaint, source: YamlSource | undefined): TaskProblem {
  const { path, message, hint } = complaint;
  if (source && path.length > 0) return { ...problemIn(source, complaint), task: task.id };
  const position = source && { file: source.displayFile, line: 1, column: 1 };
  return { message, hint, position, task: task.id };
}

/** Name of the file without its folder and `.md`. */
const idOf = (file: string): string => file.replace(/^.*\//, '').replace(/\.md$/, '');

type ReadTask =
  | { readonly kind: 'task'; readonly task: Task; readonly source: YamlSource }
  | { readonly kind: 'problems'; readonly problems: readonly NamedProblem[] };

type NamedProblem = TaskProblem & { readonly task: string };

/** Parsed files. Workers read the same files over and over. */
const cache = new Map<string, ReadTask>();
const cacheLimit = 1000;

function readCached(task: TaskFile): ReadTask {
  const key = JSON.stringify([task.file, task.displayFile, task.version, task.text]);
  const known = cache.get(key);
  if (known) return known;
  if (cache.size >= cacheLimit) cache.clear();
  const read = readTask(task);
  cache.set(key, read);
  return read;
}

function readTask({ file, displayFile = file, text, version }: TaskFile): ReadTask {
  const id = idOf(file);
  const problems = (...found: readonly Problem[]): ReadTask => ({
    kind: 'problems',
    problems: found.map(problem => ({ ...problem, task: id })),
  });
  const { yaml, body, endsAt } = splitFrontMatter(text);
  if (yaml !== undefined && endsAt === undefined) return problems(notClosed(displayFile, text));
  const source = new YamlSource({ file, displayFile, text: yaml ?? '' });
  const found = new ProblemList();
  found.open(source);
  const read = source.isReadable ? readTaskFields(source.value) : undefined;
  if (read?.kind === 'complaints') for (const complaint of read.complaints) found.add(source, complaint);
  if (read?.kind !== 'fields' || found.count > 0) return problems(...found.all());
  const { title = titleOf(body), ...fields } = read.fields;
  if (title === undefined) return problems(empty(displayFile));
  const task = { id, title, body: body.replaceAll('\r\n', '\n'), ...fields, file, version };
  return { kind: 'task', task, source };
}

function problemIn(source: YamlSource, complaint: Complaint): Problem {
  const list = new ProblemList();
  list.add(source, complaint);
  return list.all()[0] ?? { message: complaint.message, hint: complaint.hint };
}

const notClosed = (file: string, text: string): Problem => ({
  message: 'the front matter is not closed',
  hint: 'add a line `---` after the last key',
  position: { file, line: 1, column: 1 },
  excerpt: new LineIndex(text.replace(/^\uFEFF/, '')).excerpt({ start: 0, end: 3 }),
});

const empty = (file: string): Problem => ({
  message: 'the task is empty',
  hint: 'describe the task below the front matter, or remove the file',
  position: { file, line: 1, column: 1 },
});

interface ListedBy extends KnownNames {
  /** Command as written in reprise.yaml. */
  readonly command: string;
}

/** Parses the output of `tasks.command`: a JSON array, or one JSON object per line. Never throws. */
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

interface ListEntry {
  readonly value: Json;
  /** `entry 3` or `line 3`. */
  readonly place: string;
}

interface Entries {
  readonly entries: readonly ListEntry[];
  readonly problems: readonly TaskProblem[];
}

const howToList = 'print a JSON array of tasks and nothing else; write messages to stderr';

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

/** Entries of JSON lines; `undefined` if no line is a JSON object. */
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

/** Names the first line that cannot be part of any JSON. `JSON.parse` does not always report a position. */
function notJson(text: string): string {
  const lines = text.split('\n');
  let [fits, breaks] = [0, lines.length];
  while (breaks - fits > 1) {
    const middle = Math.floor((fits + breaks) / 2);
    if (isJsonPrefix(`${lines.slice(0, middle).join('\n')}\n`)) fits = middle;
    else breaks = middle;
  }
  return `did not print JSON: line ${breaks} is ${shown(lines[breaks - 1] ?? '')}`;
}

/** Whether the text can be completed to valid JSON. */
function isJsonPrefix(beginning: string): boolean {
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

/** Hash of a task. A missing field and its explicit default give the same version. */
const versionOf = (task: Omit<Task, 'version'>): string =>
  createHash('sha256')
    .update(canonicalJson({ ...task, agent: task.agent ?? null, file: null }))
    .digest('hex');

/**
 * Sets the state in the front matter of a task and keeps every other byte. Returns `undefined` if the front matter is
 * not closed, not valid YAML or not a map.
 */
export function withState(text: string, state: TaskState): string | undefined {
  const { yaml, endsAt, shift } = splitFrontMatter(text);
  if (yaml === undefined) return withFrontMatter(text, state);
  if (endsAt === undefined || isTooDeep(yaml)) return undefined;
  const document = parseDocument(yaml, { keepSourceTokens: true, logLevel: 'silent' });
  if (document.errors.length > 0) return undefined;
  const edit = editOf(document.contents, { state, yaml });
  const edited =
    edit === 'append'
      ? insert(text, endsAt, `${indentOf(document.contents, yaml)}state: ${state}${lineEndOf(text)}`)
      : edit && splice(text, { ...edit, start: edit.start + shift, end: edit.end + shift });
  return edited !== undefined && changesOnlyState(edited, state, text) ? edited : undefined;
}

function withFrontMatter(text: string, state: TaskState): string {
  const mark = text.startsWith('\uFEFF') ? 1 : 0;
  return insert(text, mark, ['---', `state: ${state}`, '---', '', ''].join(lineEndOf(text)));
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const splice = (text: string, edit: Edit): string =>
  text.slice(0, edit.start) + edit.text + text.slice(edit.end);
const insert = (text: string, at: number, added: string): string =>
  splice(text, { start: at, end: at, text: added });
const lineEndOf = (text: string): string => (/\r?\n/.exec(text)?.[0] === '\r\n' ? '\r\n' : '\n');

interface WantedState {
  readonly state: TaskState;
  readonly yaml: string;
}

function editOf(root: unknown, wanted: WantedState): Edit | 'append' | undefined {
  if (root === null || (isScalar(root) && root.value === null)) return 'append';
  if (!isMap(root)) return undefined;
  const pair = root.items.find(({ key }) => keyText(key) === 'state');
  if (pair) return editOfPair(pair, wanted);
  if (!root.flow) return 'append';
  const start = (root.range?.[0] ?? 0) + 1;
  return { start, end: start, text: ` state: ${wanted.state}${root.items.length > 0 ? ',' : ''}` };
}

function editOfPair({ key, value, srcToken }: Pair, { state, yaml }: WantedState): Edit | undefined {
  const { start, end } = rangeOf(value);
  // A block scalar takes the end of its last line with it.
  const lineEnd = /(\r?\n)?$/.exec(yaml.slice(start, end))?.[0] ?? '';
  if (end > start) return { start, end, text: `${state}${lineEnd}` };
  const colon = srcToken?.sep?.find(({ type }) => type === 'map-value-ind');
  if (colon) return { start: colon.offset + 1, end: colon.offset + 1, text: ` ${state}` };
  const { end: at } = rangeOf(key);
  return { start: at, end: at, text: `: ${state}` };
}

function rangeOf(node: unknown): { readonly start: number; readonly end: number } {
  const { range } = (node ?? {}) as { readonly range?: readonly number[] | null };
  return { start: range?.[0] ?? 0, end: range?.[1] ?? 0 };
}

/** Indentation of the keys of the front matter, which need not start in the first column. */
function indentOf(root: unknown, yaml: string): string {
  const start = isMap(root) ? ((root as YAMLMap).range?.[0] ?? 0) : 0;
  return yaml.slice(yaml.lastIndexOf('\n', start - 1) + 1, start);
}

/** Checks the edit by parsing its result. Anchors, tags and document ends are too rare to be handled one by one. */
function changesOnlyState(edited: string, state: TaskState, original: string): boolean {
  const before = fieldsOf(original);
  const after = fieldsOf(edited);
  return (
    before !== undefined &&
    after !== undefined &&
    canonicalJson(after) === canonicalJson({ ...before, state })
  );
}

function fieldsOf(text: string): Readonly<Record<string, Json>> | undefined {
  const { yaml, endsAt } = splitFrontMatter(text);
  if (endsAt === undefined) return undefined;
  const { value, isReadable } = new YamlSource({ file: '', text: yaml ?? '' });
  return isReadable && isJsonObject(value ?? {})
    ? ((value ?? {}) as Readonly<Record<string, Json>>)
    : undefined;
}
