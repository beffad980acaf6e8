import {
  type ChosenAgent,
  type TaskBoard,
  type TaskStatusWord,
  type TaskWithStatus,
  taskStatusesOf,
} from './status.ts';
import { byText, type Task } from './task.ts';

export interface TaskCandidate {
  readonly task: Task;
  readonly agent: ChosenAgent;
  /** Token to claim it with. */
  readonly seen: number;
  /** Number of tasks that cannot start before it is done. */
  readonly waiters: number;
}

export interface WaitingTask {
  readonly task: Task;
  /** Status with its reason. */
  readonly why: string;
}

export type PickResult =
  | {
      readonly kind: 'task';
      readonly task: Task;
      /** Name of the agent that starts the task. */
      readonly agent: string;
      /** Reason for the choice, shown to people. */
      readonly why: string;
      /** Token to claim it with. */
      readonly seen: number;
      readonly waiting: readonly WaitingTask[];
    }
  | { readonly kind: 'nothing'; readonly why: string; readonly waiting: readonly WaitingTask[] };

/** The built-in dispatcher: picks the first candidate. Pure, so the same board always gives the same task. */
export function pickTask(board: TaskBoard): PickResult {
  const statuses = taskStatusesOf(board);
  const waiting = statuses.flatMap(({ task, status }) =>
    task?.state === 'ready' && status.word !== 'ready' && status.word !== 'landed'
      ? [{ task, why: status.text }]
      : [],
  );
  const candidates = candidatesAmong(statuses);
  const [first] = candidates;
  if (!first) return { kind: 'nothing', why: whyNothing(statuses), waiting };
  const { task, agent, seen } = first;
  return { kind: 'task', task, agent: agent.name, why: whyThis(first, candidates.length), seen, waiting };
}

/** Tasks that may be claimed now, the most urgent first. */
export const candidatesOf = (board: TaskBoard): readonly TaskCandidate[] =>
  candidatesAmong(taskStatusesOf(board));

/** Sorted by priority, then by the number of waiting tasks, then by id. */
function candidatesAmong(statuses: readonly TaskWithStatus[]): readonly TaskCandidate[] {
  const waitersOf = countWaiters(statuses);
  return statuses
    .flatMap(({ id, task, claim, status }) =>
      task && status.word === 'ready'
        ? [{ task, agent: status.agent, seen: claim?.token ?? 0, waiters: waitersOf(id) }]
        : [],
    )
    .toSorted(
      (a, b) =>
        byText(a.task.priority, b.task.priority) || b.waiters - a.waiters || byText(a.task.id, b.task.id),
    );
}

/** Counts direct and indirect dependents. Only tasks in state `ready` count as waiting. */
function countWaiters(statuses: readonly TaskWithStatus[]): (id: string) => number {
  const dependents = new Map<string, Task[]>();
  for (const { task, status } of statuses) {
    if (!task || status.word === 'done' || status.word === 'landed') continue;
    for (const need of task.needs) {
      const known = dependents.get(need);
      if (known) known.push(task);
      else dependents.set(need, [task]);
    }
  }
  return id => {
    const reached = new Set<Task>();
    const pending = [...(dependents.get(id) ?? [])];
    for (let task = pending.pop(); task; task = pending.pop()) {
      if (reached.has(task)) continue;
      reached.add(task);
      pending.push(...(dependents.get(task.id) ?? []));
    }
    return [...reached].filter(task => task.state === 'ready' && task.id !== id).length;
  };
}

function whyThis({ task, agent, waiters }: TaskCandidate, ready: number): string {
  const place = ready === 1 ? 'the only ready task' : `the first of ${ready} ready tasks`;
  const wait = waiters === 0 ? [] : [waiters === 1 ? '1 task waits for it' : `${waiters} tasks wait for it`];
  return [`${task.priority}, ${place}`, ...wait, agentWords[agent.by]].join('; ');
}

const agentWords: Readonly<Record<ChosenAgent['by'], string>> = {
  task: 'the task names the agent',
  'same-name': 'the agent has the name of the task',
  default: 'the default agent',
};

/** Order in which the counts are listed: statuses that change soonest come first. */
const words: readonly TaskStatusWord[] = [
  'held',
  'waiting',
  'delivered',
  'parked',
  'failed',
  'invalid',
  'review',
  'blocked',
  'draft',
  'done',
  'landed',
];

function whyNothing(statuses: readonly TaskWithStatus[]): string {
  if (statuses.length === 0) return 'there are no tasks';
  const counts = words.flatMap(word => {
    const count = statuses.filter(({ status }) => status.word === word).length;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  return `no task is ready: ${counts.join(', ')}`;
}
