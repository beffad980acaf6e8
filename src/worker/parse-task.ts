import { splitFrontMatter } from '../agents/definitions.ts';
import type { Problem } from '../workflow/problems.ts';
import { type Complaint, LineIndex, ProblemList } from '../workflow/yaml/source/problem-list.ts';
import { YamlSource } from '../workflow/yaml/source/yaml-source.ts';
import type { Task, TaskList, TaskProblem } from './task.ts';
import { readTaskFields, titleOf } from './tasks/fields.ts';
import { checkTaskGraph, type GraphComplaint } from './tasks/task.ts';

export interface TaskFile {
  /** Relative to the top of the repository. */
  readonly file: string;
  /** What it is called in messages. */
  readonly displayFile?: string | undefined;
  readonly text: string;
  readonly version: string;
}

export type ParsedTask =
  | { readonly kind: 'task'; readonly task: Task }
  | { readonly kind: 'problems'; readonly problems: readonly TaskProblem[] };

/** A task as a markdown file says it. Never throws. */
export function parseTask(file: TaskFile): ParsedTask {
  const read = readTask(file);
  return read.kind === 'task' ? { kind: 'task', task: read.task } : read;
}

export interface KnownNames {
  /** Names that stand for something, although nothing is written of them any more. */
  readonly known?: Iterable<string> | undefined;
}

/** All the tasks of a folder, with everything that is wrong with them, one by one and together. Never throws. */
export function parseTasks(files: readonly TaskFile[], { known = [] }: KnownNames = {}): TaskList {
  const read = files.map(readAgain);
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

/** The name of a file without its folder and `.md`. */
const idOf = (file: string): string => file.replace(/^.*\//, '').replace(/\.md$/, '');

type ReadTask =
  | { readonly kind: 'task'; readonly task: Task; readonly source: YamlSource }
  | { readonly kind: 'problems'; readonly problems: readonly NamedProblem[] };

type NamedProblem = TaskProblem & { readonly task: string };

/** Workers look at the same files again and again. */
const lately = new Map<string, ReadTask>();
const mostRemembered = 1000;

function readAgain(task: TaskFile): ReadTask {
  const key = JSON.stringify([task.file, task.displayFile, task.version, task.text]);
  const known = lately.get(key);
  if (known) return known;
  if (lately.size >= mostRemembered) lately.clear();
  const read = readTask(task);
  lately.set(key, read);
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
  hint: 'write a line `---` below its last key',
  position: { file, line: 1, column: 1 },
  excerpt: new LineIndex(text.replace(/^\uFEFF/, '')).excerpt({ start: 0, end: 3 }),
});

const empty = (file: string): Problem => ({
  message: 'the file does not say what there is to do',
  hint: 'write it down below the front matter, or remove the file',
  position: { file, line: 1, column: 1 },
});
