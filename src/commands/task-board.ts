import { basename, join, relative, resolve } from 'node:path';
import type { AgentDefinitions } from '../agents/index.ts';
import { RepriseError } from '../core/index.ts';
import { branchesOf, openRepository, type Repository } from '../git/index.ts';
import { worktreeStatus } from '../git/workspace/index.ts';
import {
  type CommandIo,
  findProject,
  loadAgents,
  openStoredRuns,
  type Project,
  type ProjectOptions,
  readConfig,
  workerRules,
} from '../project/index.ts';
import type { Claim, EventStore } from '../store/index.ts';
import type { TaskFacts, UncommittedTask } from '../terminal/status/index.ts';
import { safeLine } from '../view/index.ts';
import type { WorkerRules } from '../worker/index.ts';
import {
  printedBy,
  readTaskFiles,
  type TaskFiles,
  taskBoardOf,
  taskStatusesOf,
} from '../worker/tasks/index.ts';

export interface TaskBoardOptions extends ProjectOptions {
  /** Whether to include all projects of the repository. */
  readonly all?: boolean | undefined;
  /** Branch to read tasks from. Defaults to the branch of the workers. */
  readonly branch?: string | undefined;
}

/** Context of commands that read the tasks of a project. */
export interface TaskContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly agents: AgentDefinitions;
  readonly rules: WorkerRules;
  readonly repository: Repository;
}

/**
 * Opens the current project, and with `all` also those of this checkout that have runs, claims or workers. Throws
 * NOT_A_REPOSITORY, USAGE and CONFIG_INVALID.
 */
export async function openTaskContexts(
  io: CommandIo,
  options: TaskBoardOptions,
): Promise<readonly TaskContext[]> {
  const current = await openTaskContext(io, options);
  if (!options.all) return [current];
  const { project } = current;
  const { root, state } = project;
  const top = resolve(root, relative(state.project, '.'));
  const contexts = [current];
  for (const name of await projectsIn(project)) {
    const at = { ...io, cwd: join(top, name) };
    const other = findProject(at, { stateDir: options.stateDir && project.stateDir });
    if (other.root !== at.cwd || other.root === root) continue;
    contexts.push(await openTaskContext(at, { ...options, stateDir: options.stateDir && project.stateDir }));
  }
  return contexts;
}

/** Heading of a project among several. */
export const projectHeading = ({ state }: Project): string => safeLine(`project ${state.project}`);

async function projectsIn(project: Project): Promise<readonly string[]> {
  const store = await openStoredRuns(project, 'readonly', { all: true });
  if (!store) return [];
  try {
    const entries = [await store.list(), await store.claims.list(), await store.workers.list()].flat();
    return [...new Set(entries.flatMap(entry => entry.project ?? []))].sort();
  } finally {
    await store.close();
  }
}

/** Throws NOT_A_REPOSITORY, USAGE and CONFIG_INVALID. */
export async function openTaskContext(io: CommandIo, options: TaskBoardOptions): Promise<TaskContext> {
  const project = findProject(io, options);
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const config = await readConfig(project, io);
  const agents = await loadAgents({ project, io }, config);
  const rules = await workerRules({ io, project, config, agents }, { branch: options.branch });
  return { io, project, agents, rules, repository };
}

/** Tasks as written in files or printed by a command, without their claims. */
export interface WrittenTasks extends TaskFiles {
  /** Output of the command that lists tasks. */
  readonly listed?: string | undefined;
  /** Error of that command. */
  readonly failure?: RepriseError | undefined;
  readonly uncommitted: readonly UncommittedTask[];
}

/** Throws CANCELLED if the signal is aborted while a command lists the tasks. */
export async function readWrittenTasks(
  context: TaskContext,
  signal: AbortSignal = context.io.interrupt,
): Promise<WrittenTasks> {
  const { repository, rules } = context;
  const read = await readTaskFiles(
    branchesOf(async () => repository),
    rules,
  );
  const uncommitted = await uncommittedTasks(context, read);
  return { ...read, uncommitted, ...(await listedTasks(context, signal)) };
}

async function listedTasks(
  { io, project, rules: { tasks } }: TaskContext,
  signal: AbortSignal,
): Promise<Pick<WrittenTasks, 'listed' | 'failure'>> {
  if (tasks.kind !== 'command') return {};
  try {
    const environment = { projectRoot: project.root, env: io.env };
    return { listed: await printedBy(environment, tasks.command, signal) };
  } catch (thrown) {
    if (thrown instanceof RepriseError && thrown.code !== 'CANCELLED')
      return { listed: '[]', failure: thrown };
    throw thrown;
  }
}

/** Task files of the checkout that are missing or different on the branch. */
async function uncommittedTasks(
  { repository, rules: { tasks } }: TaskContext,
  { files }: TaskFiles,
): Promise<readonly UncommittedTask[]> {
  if (tasks.kind !== 'folder' || repository.root === undefined) return [];
  const known = new Set(files.map(({ file }) => file));
  const start = tasks.folder === '.' ? '' : `${tasks.folder}/`;
  const { uncommitted } = await worktreeStatus(repository.git, tasks.folder);
  return uncommitted
    .filter(file => file.startsWith(start) && file.endsWith('.md') && !file.slice(start.length).includes('/'))
    .map(file => ({ id: basename(file, '.md'), file, isKnown: known.has(file) }));
}

/** Status of every task. */
export function taskFacts(
  { rules, agents }: TaskContext,
  written: WrittenTasks,
  claims: readonly Claim[],
): TaskFacts {
  const situation = taskBoardOf({ ...written, claims }, rules, agents);
  const { failure } = written;
  const failed = failure ? [{ message: failure.message, hint: failure.hint }] : [];
  return {
    branch: rules.branch,
    main: written.main,
    tasks: taskStatusesOf(situation),
    problems: [...(situation.problems ?? []), ...failed],
    uncommitted: written.uncommitted,
    howToAdd:
      rules.tasks.kind === 'folder'
        ? `write one and commit it: ${rules.tasks.folder}/<name>.md`
        : `tasks are printed by: ${rules.tasks.command}`,
  };
}

export const claimsIn = async (store: EventStore | undefined): Promise<readonly Claim[]> =>
  (await store?.claims.list()) ?? [];
