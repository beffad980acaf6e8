import { nearest } from '../../core/index.ts';
import { graphProblems, type Problem } from '../../workflow/index.ts';
import type { Path } from '../../workflow/yaml/source/index.ts';

export const priorities = ['P0', 'P1', 'P2', 'P3'] as const;
type Priority = (typeof priorities)[number];

export const taskStates = ['draft', 'ready', 'review', 'blocked', 'done'] as const;
export type TaskState = (typeof taskStates)[number];

/** A unit of work, as it is written on the branch that is landed on. */
export interface Task {
  /** The name of its file without `.md`, or what a command called it. */
  readonly id: string;
  readonly title: string;
  /** What is below the front matter. */
  readonly body: string;
  readonly priority: Priority;
  readonly state: TaskState;
  /** Tasks that have to be done before. */
  readonly needs: readonly string[];
  /** Who is to take it. */
  readonly agent?: string | undefined;
  /** Relative to the top of the repository; absent if a command listed it. */
  readonly file?: string | undefined;
  /** A hash of all that was written. */
  readonly version: string;
}

/** Something that is wrong with what is written of a task. */
export interface TaskProblem extends Problem {
  /** The name of the task; absent if what is wrong has none. */
  readonly task?: string | undefined;
}

export interface TaskList {
  /** By name: all that could be understood, also those that wait for what is no task, or for each other. */
  readonly tasks: readonly Task[];
  /** Whatever has a problem here and is not among the tasks is never dispatched. */
  readonly problems: readonly TaskProblem[];
}

/** Something that is wrong with a task because of the others. `path` leads to it in what is written of the task. */
export interface GraphComplaint {
  readonly task: Task;
  readonly path: Path;
  readonly message: string;
  readonly hint?: string | undefined;
}

interface TaskGraph {
  /** By name. Of those that share a name, none: nobody could tell them apart. */
  readonly tasks: readonly Task[];
  readonly complaints: readonly GraphComplaint[];
}

/** Looks at tasks together. `known`: names that stand for something, although they are not among the tasks. */
export function checkTaskGraph(all: readonly Task[], known: Iterable<string> = []): TaskGraph {
  const sorted = all.toSorted((a, b) => byText(a.id, b.id));
  const counts = new Map<string, number>();
  for (const { id } of sorted) counts.set(id, (counts.get(id) ?? 0) + 1);
  const tasks = sorted.filter(({ id }) => counts.get(id) === 1);
  const names = new Set([...known, ...counts.keys()]);
  const duplicates = sorted.filter(({ id }) => counts.get(id) !== 1).map(task => duplicate(task, sorted));
  return { tasks, complaints: [...duplicates, ...tasks.flatMap(needComplaints(names)), ...circles(tasks)] };
}

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function duplicate(task: Task, all: readonly Task[]): GraphComplaint {
  const others = all.flatMap(({ id, file }) => (id === task.id && file && file !== task.file ? [file] : []));
  const message = `another task has the same name${others.length > 0 ? `: ${others.join(', ')}` : ''}`;
  return { task, path: [], message, hint: 'give each a name of its own; none of them is dispatched' };
}

const needComplaints =
  (names: ReadonlySet<string>) =>
  (task: Task): readonly GraphComplaint[] =>
    task.needs.flatMap((need, index) => {
      const place = { task, path: ['needs', index] };
      if (need === task.id) return [{ ...place, message: `the task needs itself`, hint: 'remove it' }];
      if (names.has(need)) return [];
      const guess = meantBy(need, names);
      return [
        {
          ...place,
          message: `the task needs \`${need}\`, and there is no such task`,
          hint: guess && `did you mean \`${guess}\`?`,
        },
      ];
    });

/** People also write the name of the file. */
function meantBy(need: string, names: ReadonlySet<string>): string | undefined {
  const name = need.replace(/^.*\//, '').replace(/\.md$/, '');
  return names.has(name) ? name : nearest(need, names);
}

function circles(tasks: readonly Task[]): readonly GraphComplaint[] {
  const byId = new Map(tasks.map(task => [task.id, task]));
  const nodes = tasks.map(({ id, needs }) => ({ id, needs: needs.map(need => ({ id: need })) }));
  return graphProblems(nodes).flatMap(problem => {
    if (problem.kind !== 'cycle') return [];
    // The path says what comes first; the task that it ends with is the one that needs the last but one.
    const task = byId.get(problem.path.at(-1) ?? '');
    const index = task?.needs.indexOf(problem.path.at(-2) ?? '') ?? -1;
    const message = `these tasks wait for each other: ${problem.path.toReversed().join(' needs ')}`;
    return task ? [{ task, path: ['needs', index], message, hint: 'remove one of these needs' }] : [];
  });
}
