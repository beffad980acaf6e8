import type { AgentDefinition } from '../../agents/agent.ts';
import { RepriseError } from '../../core/errors.ts';
import type { Claim } from '../../store/claims.ts';
import type { AgentCards } from '../agent-card.ts';
import type { WorkerEffects } from '../effects/index.ts';
import { parseTasks } from '../parse-task.ts';
import { dispatcher, type WorkerRules } from '../rules.ts';
import type { TaskProblem } from '../task.ts';
import { digestOf } from '../task-command.ts';
import type { TaskFiles } from '../task-files.ts';
import type { Seen } from '../wake.ts';
import { parseListedTasks } from './parse.ts';
import type { Situation } from './status.ts';

export interface Look {
  readonly seen: Seen;
  readonly situation: Situation;
  /** Why the list of a command cannot be read, or not all of it. */
  readonly unread?: TaskProblem | undefined;
}

type Agents = ReadonlyMap<string, AgentDefinition>;

/**
 * What there is to do now, and who does what. The branch is read first: what changes after that wakes a sleeper. Throws
 * CANCELLED if `interrupt` comes before all is read.
 */
export async function look(
  effects: WorkerEffects,
  rules: WorkerRules,
  { agents, interrupt }: { readonly agents: Agents; readonly interrupt?: AbortSignal | undefined },
): Promise<Look> {
  const { main, files, tooLarge } = await effects.readTasks();
  const { listed, failed } = rules.tasks.kind === 'command' ? await list(effects, interrupt) : nothingListed;
  const { claims, revision } = await effects.readClaims();
  const situation = failed
    ? { ...situationOf({ files, tooLarge, listed: '[]', claims }, rules, agents), problems: [failed] }
    : situationOf({ files, tooLarge, listed, claims }, rules, agents);
  const { problems = [] } = situation;
  const unread = rules.tasks.kind === 'command' ? problems.find(({ task }) => task === undefined) : undefined;
  return {
    // Whatever is listed after a failure is something else.
    seen: { main, revision, ...(listed === undefined ? {} : { listed: digestOf(listed) }) },
    situation,
    ...(unread ? { unread } : {}),
  };
}

interface Listed {
  readonly listed?: string;
  readonly failed?: TaskProblem;
}

const nothingListed: Listed = {};

/** A command that fails now may be mended while workers wait. */
async function list(effects: WorkerEffects, interrupt: AbortSignal | undefined): Promise<Listed> {
  try {
    return { listed: await effects.listTasks(interrupt) };
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'CONFIG_INVALID') throw thrown;
    return { failed: { message: thrown.message, hint: thrown.hint } };
  }
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
