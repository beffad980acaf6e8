import { createHash, randomUUID } from 'node:crypto';
import type { AgentDefinitions } from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import type { Environment } from '../../engine/index.ts';
import type { Branches } from '../../git/index.ts';
import { startProcess } from '../../process/index.ts';
import type { Claim } from '../../store/index.ts';
import { dispatcher, type WorkerRules } from '../contract.ts';
import type { WorkerEffects } from '../effects/effects.ts';
import type { AgentCards } from '../handoff/handoff.ts';
import type { WakeSnapshot } from '../wake.ts';
import { parseListedTasks, parseTasks } from './parse.ts';
import type { TaskBoard } from './status.ts';
import type { TaskProblem } from './task.ts';

export interface TaskReading {
  readonly seen: WakeSnapshot;
  readonly board: TaskBoard;
  /** Why the list of a command cannot be read, or not all of it. */
  readonly unread?: TaskProblem | undefined;
}

/**
 * What there is to do now, and who does what. The branch is read first: what changes after that wakes a sleeper. Throws
 * CANCELLED if `interrupt` comes before all is read.
 */
export async function readTasks(
  effects: WorkerEffects,
  rules: WorkerRules,
  { agents, interrupt }: { readonly agents: AgentDefinitions; readonly interrupt?: AbortSignal | undefined },
): Promise<TaskReading> {
  const { main, files, tooLarge } = await effects.readTasks();
  const { listed, failed } = rules.tasks.kind === 'command' ? await list(effects, interrupt) : nothingListed;
  const { claims, revision } = await effects.readClaims();
  const board = failed
    ? { ...taskBoardOf({ files, tooLarge, listed: '[]', claims }, rules, agents), problems: [failed] }
    : taskBoardOf({ files, tooLarge, listed, claims }, rules, agents);
  const { problems = [] } = board;
  const unread = rules.tasks.kind === 'command' ? problems.find(({ task }) => task === undefined) : undefined;
  return {
    // Whatever is listed after a failure is something else.
    seen: { main, revision, ...(listed === undefined ? {} : { listed: digestOf(listed) }) },
    board,
    ...(unread ? { unread } : {}),
  };
}

interface ListedTasks {
  readonly listed?: string;
  readonly failed?: TaskProblem;
}

const nothingListed: ListedTasks = {};

/** A command that fails now may be mended while workers wait. */
async function list(effects: WorkerEffects, interrupt: AbortSignal | undefined): Promise<ListedTasks> {
  try {
    return { listed: await effects.listTasks(interrupt) };
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'CONFIG_INVALID') throw thrown;
    return { failed: { message: thrown.message, hint: thrown.hint } };
  }
}

interface TaskSources extends Pick<TaskFiles, 'files' | 'tooLarge'> {
  /** What a command printed, if one lists the tasks. */
  readonly listed?: string | undefined;
  readonly claims: readonly Claim[];
}

/** What was read, understood. */
export function taskBoardOf(
  { files, tooLarge, listed, claims }: TaskSources,
  rules: WorkerRules,
  agents: AgentDefinitions,
): TaskBoard {
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
export const takersOf = (agents: AgentDefinitions): AgentCards =>
  new Map([...agents].filter(([name]) => name !== dispatcher));

/** Whom agents are told of: those that the project itself has defined. */
export const colleaguesOf = (agents: AgentDefinitions, agent: string): AgentCards =>
  new Map(
    [...agents].filter(
      ([name, { kind, description }]) =>
        name !== dispatcher && name !== agent && (name !== kind || description !== undefined),
    ),
  );

const defaultAgent = ({ agent }: WorkerRules, agents: AgentDefinitions): string =>
  agent ?? (agents.has('implement') ? 'implement' : 'claude');

/** Files that stand for tasks, where the branch stood when they were read. */
export interface TaskFiles {
  /** `null`: there is no such branch, or it has no commit. */
  readonly main: string | null;
  readonly files: readonly { readonly file: string; readonly version: string; readonly text: string }[];
  /** Those that were too large to be read. */
  readonly tooLarge: readonly string[];
}

/** The tasks as they are written on the branch; none if a command lists them. `last`: what was read before. */
export async function readTaskFiles(
  branches: Branches,
  { branch, tasks }: Pick<WorkerRules, 'branch' | 'tasks'>,
  last?: TaskFiles,
): Promise<TaskFiles> {
  const main = await branches.tip(branch);
  if (main === null || tasks.kind !== 'folder') return { main, files: [], tooLarge: [] };
  if (last?.main === main) return last;
  const read = await branches.filesAt({ commit: main, folder: tasks.folder });
  const markdown = read.filter(({ path }) => path.endsWith('.md'));
  return {
    main,
    files: markdown.flatMap(({ path, blob, text }) =>
      text === undefined ? [] : { file: path, version: blob, text },
    ),
    tooLarge: markdown.flatMap(({ path, text }) => (text === undefined ? path : [])),
  };
}

const mostCharacters = 16 * 1024 * 1024;
const mostMs = 60_000;

type TaskFileContext = Pick<Environment, 'projectRoot' | 'env'>;

/**
 * What the command prints that lists the tasks of a project. Nothing that it started is left when this returns. Throws
 * CONFIG_INVALID if it fails, and CANCELLED.
 */
export async function printedBy(
  { projectRoot, env }: TaskFileContext,
  command: string,
  ...signals: readonly AbortSignal[]
): Promise<string> {
  throwIfAborted(signals);
  const lines: string[] = [];
  let characters = 0;
  let saidLast = '';
  let why: string | undefined;
  const stop = (reason: string) => {
    why ??= reason;
    void child.stop({ graceMs: 0 });
  };
  const child = startProcess({
    argv: ['sh', '-c', command],
    cwd: projectRoot,
    env,
    marker: { REPRISE_INCARNATION: randomUUID() },
    onLine: (stream, line) => {
      if (stream === 'stderr') saidLast = line.trim() === '' ? saidLast : line;
      else if (characters <= mostCharacters) lines.push(line);
      characters += line.length;
      if (characters > mostCharacters) stop('it prints more than 16 MB');
    },
  });
  const patience = setTimeout(() => stop('it takes longer than a minute'), mostMs);
  const cancel = () => stop('it was cancelled');
  for (const signal of signals) signal.addEventListener('abort', cancel, { once: true });
  try {
    const end = await child.ended;
    await child.stop({ graceMs: 0 });
    throwIfAborted(signals);
    if (end.kind === 'exited' && end.exitCode === 0 && why === undefined) return lines.join('\n');
    throw failed(command, why ?? (saidLast || howItEnded(end)));
  } finally {
    clearTimeout(patience);
    for (const signal of signals) signal.removeEventListener('abort', cancel);
  }
}

function throwIfAborted(signals: readonly AbortSignal[]): void {
  if (signals.some(({ aborted }) => aborted))
    throw new RepriseError('CANCELLED', 'the command that lists the tasks was ended');
}

function howItEnded(end: Awaited<ReturnType<typeof startProcess>['ended']>): string {
  switch (end.kind) {
    case 'exited':
      return `it exited with code ${end.exitCode}`;
    case 'signalled':
      return `it was ended by ${end.signal}`;
    case 'couldNotStart':
      return end.error.message;
  }
}

const failed = (command: string, why: string): RepriseError =>
  new RepriseError('CONFIG_INVALID', `the command that lists the tasks failed: ${command}\n${why}`, {
    hint: 'run it by hand, and mend `tasks.command` in reprise.yaml',
  });

/** By which it is noticed that something else was printed. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
