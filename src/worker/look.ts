import type { AgentDefinition } from '../agents/agent.ts';
import type { Claim } from '../store/claims.ts';
import type { AgentCards } from './agent-card.ts';
import type { WorkerEffects } from './effects.ts';
import { parseListedTasks } from './parse-listed-tasks.ts';
import { parseTasks } from './parse-task.ts';
import { dispatcher, type WorkerRules } from './rules.ts';
import type { Situation } from './standing.ts';
import { digestOf } from './task-command.ts';
import type { TaskFiles } from './task-files.ts';
import type { Seen } from './waking.ts';

export interface Look {
  readonly seen: Seen;
  readonly situation: Situation;
}

type Agents = ReadonlyMap<string, AgentDefinition>;

/** What there is to do now, and who does what. The branch is read first: what changes after that wakes a sleeper. */
export async function look(effects: WorkerEffects, rules: WorkerRules, agents: Agents): Promise<Look> {
  const { main, files, tooLarge } = await effects.readTasks();
  const listed = rules.tasks.kind === 'command' ? await effects.listTasks() : undefined;
  const { claims, revision } = await effects.readClaims();
  return {
    seen: { main, revision, ...(listed === undefined ? {} : { listed: digestOf(listed) }) },
    situation: situationOf({ files, tooLarge, listed, claims }, rules, agents),
  };
}

export interface Read extends Pick<TaskFiles, 'files' | 'tooLarge'> {
  /** What a command printed, if one lists the tasks. */
  readonly listed?: string | undefined;
  readonly claims: readonly Claim[];
}

/** What was read, understood. */
export function situationOf(
  { files, tooLarge, listed, claims }: Read,
  rules: WorkerRules,
  agents: Agents,
): Situation {
  const known = claims.map(({ task }) => task);
  const list =
    rules.tasks.kind === 'command'
      ? parseListedTasks(listed ?? '', { command: rules.tasks.command, known })
      : parseTasks(files, { known });
  const unread = tooLarge.map(file => ({ message: `${file} is too large for a task`, hint: undefined }));
  return {
    tasks: list.tasks,
    problems: [...list.problems, ...unread],
    claims,
    agents: [...takersOf(agents).keys()],
    defaultAgent: defaultAgent(rules, agents),
  };
}

/** Who can take a turn at a task: everybody but the one who hands tasks out. */
export const takersOf = (agents: Agents): AgentCards =>
  new Map([...agents].filter(([name]) => name !== dispatcher));

/** Whom agents are told of: those that the project itself has defined. */
export const colleaguesOf = (agents: Agents, agent: string): AgentCards =>
  new Map(
    [...agents].filter(
      ([name, { kind, description }]) =>
        name !== dispatcher && name !== agent && (name !== kind || description !== undefined),
    ),
  );

const defaultAgent = ({ agent }: WorkerRules, agents: Agents): string =>
  agent ?? (agents.has('implement') ? 'implement' : 'claude');
