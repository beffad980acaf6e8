import { nearest } from '../../core/index.ts';
import { graphProblems, type Problem } from '../../workflow/index.ts';
import type { Path } from '../../workflow/yaml/source/index.ts';

export const priorities = ['P0', 'P1', 'P2', 'P3'] as const;
type Priority = (typeof priorities)[number];

export const taskStates = ['draft', 'ready', 'review', 'blocked', 'done'] as const;
export type TaskState = (typeof taskStates)[number];

/** A unit of work, as defined on the branch that work lands on. */
export interface Task {
  /** Name of its file without `.md`, or the id that `tasks.command` gave it. */
  readonly id: string;
  readonly title: string;
  /** Text below the front matter. */
  readonly body: string;
  readonly priority: Priority;
  readonly state: TaskState;
  /** Ids of the tasks that must be done first. */
  readonly needs: readonly string[];
  /** Agent that starts the task. */
  readonly agent?: string | undefined;
  /** Path relative to the root of the repository; absent if a command listed the task. */
  readonly file?: string | undefined;
  /** Hash of the definition. */
  readonly version: string;
}

/** A problem with the definition of a task. */
export interface TaskProblem extends Problem {
  /** Id of the task; absent if it is unknown. */
  readonly task?: string | undefined;
}

export interface TaskList {
  /** Valid tasks, sorted by id. Includes tasks that need an unknown task or each other. */
  readonly tasks: readonly Task[];
  /** A task that has a problem and is not among `tasks` is never dispatched. */
  readonly problems: readonly TaskProblem[];
}

/** A problem of a task with regard to other tasks. `path` is its position in the front matter. */
export interface GraphComplaint {
  readonly task: Task;
  readonly path: Path;
  readonly message: string;
  readonly hint?: string | undefined;
}

interface TaskGraph {
  /** Tasks with a unique id, sorted by id. */
  readonly tasks: readonly Task[];
  readonly complaints: readonly GraphComplaint[];
}

/** Checks ids and dependencies. `known`: ids that `needs` may name in addition to those of the tasks. */
export function checkTaskGraph(all: readonly Task[], known: Iterable<string> = []): TaskGraph {
  const sorted = all.toSorted((a, b) => byText(a.id, b.id));
  const counts = new Map<string, number>();
  for (const { id } of sorted) counts.set(id, (counts.get(id) ?? 0) + 1);
  const tasks = sorted.filter(({ id }) => counts.get(id) === 1);
  const names = new Set([...known, ...counts.keys()]);
  const duplicates = sorted.filter(({ id }) => counts.get(id) !== 1).map(task => duplicate(task, sorted));
  return { tasks, complaints: [...duplicates, ...tasks.flatMap(needComplaints(names)), ...cycles(tasks)] };
}

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function duplicate(task: Task, all: readonly Task[]): GraphComplaint {
  const others = all.flatMap(({ id, file }) => (id === task.id && file && file !== task.file ? [file] : []));
  const message = `another task has the same name${others.length > 0 ? `: ${others.join(', ')}` : ''}`;
  return { task, path: [], message, hint: 'rename all but one; until then none of them is dispatched' };
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
          message: `the task needs \`${need}\`, but there is no such task`,
          hint: guess && `did you mean \`${guess}\`?`,
        },
      ];
    });

/** Guesses the id that was meant. A file path is a common mistake. */
function meantBy(need: string, names: ReadonlySet<string>): string | undefined {
  const name = need.replace(/^.*\//, '').replace(/\.md$/, '');
  return names.has(name) ? name : nearest(need, names);
}

function cycles(tasks: readonly Task[]): readonly GraphComplaint[] {
  const byId = new Map(tasks.map(task => [task.id, task]));
  const nodes = tasks.map(({ id, needs }) => ({ id, needs: needs.map(need => ({ id: need })) }));
  return graphProblems(nodes).flatMap(problem => {
    if (problem.kind !== 'cycle') return [];
    // The path lists dependencies first: its last task needs the last but one.
    const task = byId.get(problem.path.at(-1) ?? '');
    const index = task?.needs.indexOf(problem.path.at(-2) ?? '') ?? -1;
    const message = `these tasks wait for each other: ${problem.path.toReversed().join(' needs ')}`;
    return task ? [{ task, path: ['needs', index], message, hint: 'remove one of these dependencies' }] : [];
  });
}
