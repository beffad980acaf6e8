import {
  type ChosenAgent,
  type Situation,
  type StandingWord,
  standingsOf,
  type TaskStanding,
} from './status.ts';
import { byText, type Task } from './task.ts';

export interface Candidate {
  readonly task: Task;
  readonly agent: ChosenAgent;
  /** The token to claim it with. */
  readonly seen: number;
  /** How many tasks cannot begin before it is done. */
  readonly waiters: number;
}

export interface WaitingTask {
  readonly task: Task;
  /** The word for how it stands, and the reason. */
  readonly why: string;
}

export type Picked =
  | {
      readonly kind: 'task';
      readonly task: Task;
      /** The name of who is to take it. */
      readonly agent: string;
      /** For people. */
      readonly why: string;
      /** The token to claim it with. */
      readonly seen: number;
      readonly waiting: readonly WaitingTask[];
    }
  | { readonly kind: 'nothing'; readonly why: string; readonly waiting: readonly WaitingTask[] };

/** The dispatcher that needs no model: the first of the tasks that may be taken now. The same situation, the same answer. */
export function pickTask(situation: Situation): Picked {
  const standings = standingsOf(situation);
  const waiting = standings.flatMap(({ task, standing }) =>
    task?.state === 'ready' && standing.word !== 'ready' && standing.word !== 'landed'
      ? [{ task, why: standing.text }]
      : [],
  );
  const candidates = candidatesAmong(standings);
  const [first] = candidates;
  if (!first) return { kind: 'nothing', why: whyNothing(standings), waiting };
  const { task, agent, seen } = first;
  return { kind: 'task', task, agent: agent.name, why: whyThis(first, candidates.length), seen, waiting };
}

/** The tasks that may be taken now, the most urgent first. */
export const candidatesOf = (situation: Situation): readonly Candidate[] =>
  candidatesAmong(standingsOf(situation));

/** By priority; then what most others wait for; then by name. */
function candidatesAmong(standings: readonly TaskStanding[]): readonly Candidate[] {
  const waitersOf = countWaiters(standings);
  return standings
    .flatMap(({ id, task, claim, standing }) =>
      task && standing.word === 'ready'
        ? [{ task, agent: standing.agent, seen: claim?.token ?? 0, waiters: waitersOf(id) }]
        : [],
    )
    .toSorted(
      (a, b) =>
        byText(a.task.priority, b.task.priority) || b.waiters - a.waiters || byText(a.task.id, b.task.id),
    );
}

/** Also those that wait for a task that waits for it. Whatever has not been released to be worked on waits for nothing. */
function countWaiters(standings: readonly TaskStanding[]): (id: string) => number {
  const dependents = new Map<string, Task[]>();
  for (const { task, standing } of standings) {
    if (!task || standing.word === 'done' || standing.word === 'landed') continue;
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

function whyThis({ task, agent, waiters }: Candidate, ready: number): string {
  const place = ready === 1 ? 'the only ready task' : `the first of ${ready} ready tasks`;
  const wait = waiters === 0 ? [] : [waiters === 1 ? '1 task waits for it' : `${waiters} tasks wait for it`];
  return [`${task.priority}, ${place}`, ...wait, agentWords[agent.by]].join('; ');
}

const agentWords: Readonly<Record<ChosenAgent['by'], string>> = {
  task: 'the task names the agent',
  'same-name': 'the agent has the name of the task',
  default: 'the agent for tasks that name none',
};

/** In the order in which they may change. */
const words: readonly StandingWord[] = [
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

function whyNothing(standings: readonly TaskStanding[]): string {
  if (standings.length === 0) return 'there are no tasks';
  const counts = words.flatMap(word => {
    const count = standings.filter(({ standing }) => standing.word === word).length;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  return `no task is ready: ${counts.join(', ')}`;
}
