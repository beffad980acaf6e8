import { nearest } from '../../core/index.ts';
import { type Claim, isHeld } from '../../store/index.ts';
import { byText, type Task, type TaskList } from './task.ts';

export type TaskStatusWord =
  | 'ready'
  | 'held'
  | 'waiting'
  | 'draft'
  | 'review'
  | 'blocked'
  | 'delivered'
  | 'parked'
  | 'failed'
  | 'invalid'
  | 'done'
  | 'landed';

/** How a task stands: a word, and the word with the reason, such as `held by anna` or `failed: the tests fail`. */
export type TaskStatus =
  | { readonly word: 'ready'; readonly text: string; readonly agent: ChosenAgent }
  | { readonly word: Exclude<TaskStatusWord, 'ready'>; readonly text: string };

/** Who takes a task, and who said so. */
export interface ChosenAgent {
  readonly name: string;
  readonly by: 'task' | 'same-name' | 'default';
}

/** All that decides how tasks stand. A TaskList may be spread into it. */
export interface TaskBoard extends Pick<TaskList, 'tasks'> {
  readonly problems?: TaskList['problems'] | undefined;
  readonly claims: readonly Claim[];
  /** The names of those who can take a task. */
  readonly agents: Iterable<string>;
  /** Who takes tasks that name nobody. */
  readonly defaultAgent?: string | undefined;
}

export interface TaskWithStatus {
  readonly id: string;
  /** Absent if it could not be understood. */
  readonly task?: Task | undefined;
  readonly claim?: Claim | undefined;
  readonly status: TaskStatus;
}

/** How every task stands, by name; also of those that could not be understood. */
export function taskStatusesOf(board: TaskBoard): readonly TaskWithStatus[] {
  const view = taskIndexOf(board);
  const understood = board.tasks.map(task => ({
    id: task.id,
    task,
    claim: view.claims.get(task.id),
    status: statusIn(view, task),
  }));
  const invalid = new Map<string, TaskWithStatus>();
  for (const { task: id, message } of board.problems ?? []) {
    if (id === undefined || view.tasks.has(id) || invalid.has(id)) continue;
    const status = { word: 'invalid', text: `invalid: ${message}` } as const;
    invalid.set(id, { id, claim: view.claims.get(id), status });
  }
  return [...understood, ...invalid.values()].toSorted((a, b) => byText(a.id, b.id));
}

/** How one task stands among the others. */
export const taskStatusOf = (task: Task, board: TaskBoard): TaskStatus => statusIn(taskIndexOf(board), task);

interface TaskIndex {
  readonly tasks: ReadonlyMap<string, Task>;
  /** Those that could not be understood. */
  readonly broken: ReadonlySet<string>;
  readonly claims: ReadonlyMap<string, Claim>;
  readonly agents: ReadonlySet<string>;
  readonly defaultAgent: string | undefined;
}

const taskIndexOf = ({ tasks, problems = [], claims, agents, defaultAgent }: TaskBoard): TaskIndex => ({
  tasks: new Map(tasks.map(task => [task.id, task])),
  broken: new Set(problems.flatMap(({ task }) => task ?? [])),
  claims: new Map(claims.map(claim => [claim.task, claim])),
  agents: new Set(agents),
  defaultAgent,
});

function statusIn(view: TaskIndex, task: Task): TaskStatus {
  const own = ownStatus(task, view.claims.get(task.id));
  if (own) return own;
  const open = [...new Set(task.needs)].filter(need => !isDone(view, need));
  if (open.length > 0) {
    const text = `waiting for ${joined(open.map(need => `\`${need}\`${whyOpen(view, need)}`))}`;
    return { word: 'waiting', text };
  }
  const agent = agentFor(view, task);
  return typeof agent === 'string'
    ? { word: 'invalid', text: `invalid: ${agent}` }
    : { word: 'ready', text: 'ready', agent };
}

/** As far as it has nothing to do with other tasks or with agents; `undefined` if nobody has anything against it. */
function ownStatus(task: Task, claim: Claim | undefined): Exclude<TaskStatus, { word: 'ready' }> | undefined {
  if (claim && isHeld(claim)) return { word: 'held', text: `held by ${claim.by}` };
  const isSame = claim?.version === task.version;
  if (claim?.state === 'landed' && (isSame || task.state === 'done')) {
    return { word: 'landed', text: claim.commit ? `landed as ${claim.commit.slice(0, 10)}` : 'landed' };
  }
  if (task.state !== 'ready') return { word: task.state, text: task.state };
  // Whoever changes the text of a task wants it to be tried again.
  return claim && isSame ? settledStatus(claim) : undefined;
}

function settledStatus({ state, reason, branch }: Claim): Exclude<TaskStatus, { word: 'ready' }> | undefined {
  const where = branch ? ` on ${branch}` : '';
  const why = reason ? `: ${reason}` : '';
  switch (state) {
    case 'delivered':
      return { word: state, text: `delivered${where}` };
    case 'parked':
    case 'failed':
      return { word: state, text: `${state}${where}${why}` };
    // What is called held and gets here belongs to a run that has ended.
    case 'held':
    case 'released':
    case 'landed':
      return undefined;
  }
}

/** A task that landed and was written anew is open again; one that landed and is gone is not. */
function isDone({ tasks, claims }: TaskIndex, need: string): boolean {
  const task = tasks.get(need);
  const claim = claims.get(need);
  if (task?.state === 'done') return true;
  return claim?.state === 'landed' && (task === undefined || task.version === claim.version);
}

function whyOpen({ tasks, broken, claims }: TaskIndex, need: string): string {
  const task = tasks.get(need);
  const claim = claims.get(need);
  if (!task) return broken.has(need) ? ' (invalid)' : claim ? ' (gone)' : ' (no such task)';
  const own = ownStatus(task, claim);
  return own ? ` (${own.word})` : '';
}

/** A text says why there is none. */
function agentFor({ agents, defaultAgent }: TaskIndex, task: Task): ChosenAgent | string {
  if (task.agent !== undefined) {
    return agents.has(task.agent) ? { name: task.agent, by: 'task' } : noAgent(task.agent, agents);
  }
  if (agents.has(task.id)) return { name: task.id, by: 'same-name' };
  if (defaultAgent === undefined) return 'it names no agent, and there is none for such tasks';
  return agents.has(defaultAgent) ? { name: defaultAgent, by: 'default' } : noAgent(defaultAgent, agents);
}

function noAgent(name: string, agents: ReadonlySet<string>): string {
  const guess = nearest(name, agents);
  return `there is no agent \`${name}\`${guess === undefined ? '' : `; did you mean \`${guess}\`?`}`;
}

const joined = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
