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

/** Status of a task as a word, and as text with the reason, such as `held by anna` or `failed: the tests fail`. */
export type TaskStatus =
  | { readonly word: 'ready'; readonly text: string; readonly agent: ChosenAgent }
  | { readonly word: Exclude<TaskStatusWord, 'ready'>; readonly text: string };

/** Agent that starts a task, and where the choice comes from. */
export interface ChosenAgent {
  readonly name: string;
  readonly by: 'task' | 'same-name' | 'default';
}

/** Input for the status of tasks. A `TaskList` may be spread into it. */
export interface TaskBoard extends Pick<TaskList, 'tasks'> {
  readonly problems?: TaskList['problems'] | undefined;
  readonly claims: readonly Claim[];
  /** Names of the agents that can work on a task. */
  readonly agents: Iterable<string>;
  /** Agent of tasks that name none. */
  readonly defaultAgent?: string | undefined;
}

export interface TaskWithStatus {
  readonly id: string;
  /** Absent if the definition is invalid. */
  readonly task?: Task | undefined;
  readonly claim?: Claim | undefined;
  readonly status: TaskStatus;
}

/** Status of every task, sorted by id. Includes tasks with an invalid definition. */
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

/**
 * Whether a task can never be done as it is written: it is invalid, or it waits for a task that does not exist or for
 * itself.
 */
export function hasImpossibleTask(board: TaskBoard): boolean {
  const { problems = [] } = board;
  const named = new Set(problems.map(({ task }) => task));
  return (
    named.has(undefined) ||
    taskStatusesOf(board).some(
      ({ id, status: { word } }) => word === 'invalid' || (word === 'waiting' && named.has(id)),
    )
  );
}

/** Status of one task, with regard to the others. */
export const taskStatusOf = (task: Task, board: TaskBoard): TaskStatus => statusIn(taskIndexOf(board), task);

interface TaskIndex {
  readonly tasks: ReadonlyMap<string, Task>;
  /** Ids of tasks that have problems. */
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

/** Status determined by the task and its claim alone; `undefined` if neither keeps the task from being ready. */
function ownStatus(task: Task, claim: Claim | undefined): Exclude<TaskStatus, { word: 'ready' }> | undefined {
  if (claim && isHeld(claim)) {
    const waits = claim.runStatus === 'waiting' ? ', waiting for an approval' : '';
    return { word: 'held', text: `held by ${claim.by}${waits}` };
  }
  const isSame = claim?.version === task.version;
  if (claim?.state === 'landed' && (isSame || task.state === 'done')) {
    return { word: 'landed', text: claim.commit ? `landed as ${claim.commit.slice(0, 10)}` : 'landed' };
  }
  if (task.state !== 'ready') return { word: task.state, text: task.state };
  // A task whose text has changed since the claim is retried.
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
    // A held claim gets here only if its run has ended.
    case 'held':
    case 'released':
    case 'landed':
      return undefined;
  }
}

/** A landed task is open again if its text has changed, but not if its file was removed. */
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

/** Agent that starts the task, or a message that says why there is none. */
function agentFor({ agents, defaultAgent }: TaskIndex, task: Task): ChosenAgent | string {
  if (task.agent !== undefined) {
    return agents.has(task.agent) ? { name: task.agent, by: 'task' } : noAgent(task.agent, agents);
  }
  if (agents.has(task.id)) return { name: task.id, by: 'same-name' };
  if (defaultAgent === undefined) return 'it names no agent, and there is no default agent';
  return agents.has(defaultAgent) ? { name: defaultAgent, by: 'default' } : noAgent(defaultAgent, agents);
}

function noAgent(name: string, agents: ReadonlySet<string>): string {
  const guess = nearest(name, agents);
  return `there is no agent \`${name}\`${guess === undefined ? '' : `; did you mean \`${guess}\`?`}`;
}

const joined = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
