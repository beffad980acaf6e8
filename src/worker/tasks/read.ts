import { createHash, randomUUID } from 'node:crypto';
import type { AgentDefinitions } from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import type { Environment } from '../../engine/index.ts';
import { type Branches, stalledText } from '../../git/index.ts';
import { startProcess } from '../../process/index.ts';
import { type Claim, isHeld } from '../../store/index.ts';
import { dispatcher, type WorkerRules } from '../contract.ts';
import type { WorkerEffects } from '../effects/effects.ts';
import type { AgentCards } from '../handoff/handoff.ts';
import { type StalledRun, stallMark, type WakeSnapshot } from '../wake.ts';
import { parseListedTasks, parseTasks } from './parse.ts';
import { pickTask } from './pick.ts';
import type { TaskBoard } from './status.ts';
import type { TaskProblem } from './task.ts';

export interface TaskReading {
  readonly seen: WakeSnapshot;
  readonly board: TaskBoard;
  /** Problem because of which some or all tasks of a command could not be read. */
  readonly unread?: TaskProblem | undefined;
  readonly stalled?: readonly StalledRun[] | undefined;
}

/**
 * Reads the tasks and the claims on them. The branch is read first, so a change during the read wakes a sleeping worker.
 * Throws CANCELLED if interrupted before everything is read.
 */
export async function readTasks(
  effects: WorkerEffects,
  rules: WorkerRules,
  { agents, interrupt }: { readonly agents: AgentDefinitions; readonly interrupt?: AbortSignal | undefined },
): Promise<TaskReading> {
  const { main, files, tooLarge } = await effects.readTasks();
  const { listed, failed } = rules.tasks.kind === 'command' ? await list(effects, interrupt) : nothingListed;
  const { claims, revision, stalled = [] } = await effects.readClaims();
  const board = failed
    ? { ...taskBoardOf({ files, tooLarge, listed: '[]', claims }, rules, agents), problems: [failed] }
    : taskBoardOf({ files, tooLarge, listed, claims }, rules, agents);
  const { problems = [] } = board;
  const unread = rules.tasks.kind === 'command' ? problems.find(({ task }) => task === undefined) : undefined;
  return {
    // After a failure `listed` is absent, so the next successful listing counts as a change.
    seen: {
      main,
      revision,
      ...(listed === undefined ? {} : { listed: digestOf(listed) }),
      ...(stalled.length > 0 ? { stalled: stallMark(stalled) } : {}),
    },
    board,
    ...(unread ? { unread } : {}),
    ...(stalled.length > 0 ? { stalled } : {}),
  };
}

/** A run that waits for a person, or for a process that was given up, keeps its task, but no worker is busy with it. */
export const isAnyWorkerBusy = ({ board, stalled = [] }: TaskReading): boolean =>
  board.claims.some(
    claim =>
      isHeld(claim) &&
      claim.runStatus === 'running' &&
      !stalled.some(({ runId, isGivenUp }) => isGivenUp && runId === claim.runId),
  );

/** Why the dispatcher picks no task. */
export function whyOf({ board, unread, stalled = [] }: TaskReading): string {
  if (unread && board.tasks.length === 0) return 'the list of tasks cannot be read';
  const picked = pickTask(board);
  const why = picked.kind === 'nothing' ? picked.why : 'the dispatcher chose to wait';
  return [why, ...stalled.map(({ owner, ms }) => stalledText(owner, ms))].join('; ');
}

interface ListedTasks {
  readonly listed?: string;
  readonly failed?: TaskProblem;
}

const nothingListed: ListedTasks = {};

/** A failing command is reported and not thrown: it may be fixed while workers wait. */
async function list(effects: WorkerEffects, interrupt: AbortSignal | undefined): Promise<ListedTasks> {
  try {
    return { listed: await effects.listTasks(interrupt) };
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'CONFIG_INVALID') throw thrown;
    return { failed: { message: thrown.message, hint: thrown.hint } };
  }
}

interface TaskSources extends Pick<TaskFiles, 'files' | 'tooLarge'> {
  /** Output of `tasks.command`, if the project has one. */
  readonly listed?: string | undefined;
  readonly claims: readonly Claim[];
}

/** Parses the sources. */
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

/** Agents that can work on a task: all but the dispatcher. */
export const takersOf = (agents: AgentDefinitions): AgentCards =>
  new Map([...agents].filter(([name]) => name !== dispatcher));

/** Agents that an agent may hand over to: the others that the project itself defines. */
export const colleaguesOf = (agents: AgentDefinitions, agent: string): AgentCards =>
  new Map(
    [...agents].filter(
      ([name, { kind, description }]) =>
        name !== dispatcher && name !== agent && (name !== kind || description !== undefined),
    ),
  );

const defaultAgent = ({ agent }: WorkerRules, agents: AgentDefinitions): string =>
  agent ?? (agents.has('implement') ? 'implement' : 'claude');

/** Task files at a commit of the branch. */
export interface TaskFiles {
  /** Tip of the branch; `null` if the branch does not exist or has no commit. */
  readonly main: string | null;
  readonly files: readonly { readonly file: string; readonly version: string; readonly text: string }[];
  /** Paths of files that are too large to be read. */
  readonly tooLarge: readonly string[];
}

/** Reads the task files on the branch; none if a command lists the tasks. `last` is reused if the tip is the same. */
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
 * Runs the command that lists the tasks and returns its output. All its processes have ended when this returns. Throws
 * CONFIG_INVALID if the command fails, and CANCELLED if a signal aborts it.
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
    // JSON may be on one line.
    maxLineLength: mostCharacters,
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
    throw new RepriseError('CANCELLED', 'the command that lists the tasks was stopped');
}

function howItEnded(end: Awaited<ReturnType<typeof startProcess>['ended']>): string {
  switch (end.kind) {
    case 'exited':
      return `it exited with code ${end.exitCode}`;
    case 'signalled':
      return `it was terminated by ${end.signal}`;
    case 'couldNotStart':
      return end.error.message;
  }
}

const failed = (command: string, why: string): RepriseError =>
  new RepriseError('CONFIG_INVALID', `the command that lists the tasks failed: ${command}\n${why}`, {
    hint: 'run it by hand, then fix `tasks.command` in reprise.yaml',
  });

/** Digest by which a change of the output is noticed. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
