import { basename } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import { branchesOf } from '../git/refs.ts';
import { openRepository, type Repository } from '../git/repository.ts';
import { worktreeStatus } from '../git/workspace/commit.ts';
import { type Agents, loadAgents } from '../project/agents.ts';
import type { CommandIo } from '../project/host.ts';
import { findProject, type Project, type ProjectOptions, readConfig } from '../project/project.ts';
import { workerRules } from '../project/worker-rules.ts';
import type { Claim } from '../store/claims.ts';
import type { EventStore } from '../store/port.ts';
import type { TaskFacts, UncommittedTask } from '../terminal/status/facts.ts';
import type { WorkerRules } from '../worker/contract.ts';
import { printedBy, readTaskFiles, situationOf, type TaskFiles } from '../worker/tasks/read.ts';
import { standingsOf } from '../worker/tasks/status.ts';

export interface TaskBoardOptions extends ProjectOptions {
  /** Whose tasks; by default what workers work on. */
  readonly branch?: string | undefined;
}

/** Where the tasks of a project are, and by which rules they are worked on. */
export interface TaskPlace {
  readonly io: CommandIo;
  readonly project: Project;
  readonly agents: Agents;
  readonly rules: WorkerRules;
  readonly repository: Repository;
}

/** Throws NOT_A_REPOSITORY, USAGE and CONFIG_INVALID. */
export async function openTaskPlace(io: CommandIo, options: TaskBoardOptions): Promise<TaskPlace> {
  const project = findProject(io, options);
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const config = await readConfig(project, io);
  const agents = await loadAgents({ project, io }, config);
  const rules = await workerRules({ io, project, config, agents }, { branch: options.branch });
  return { io, project, agents, rules, repository };
}

/** What is written of the tasks, before anybody's claims are known. */
export interface WrittenTasks extends TaskFiles {
  readonly listed?: string | undefined;
  /** Why a command could not list them. */
  readonly failure?: RepriseError | undefined;
  readonly uncommitted: readonly UncommittedTask[];
}

/** Throws CANCELLED if the signal comes while a command lists them. */
export async function readWrittenTasks(
  place: TaskPlace,
  signal: AbortSignal = place.io.interrupt,
): Promise<WrittenTasks> {
  const { repository, rules } = place;
  const read = await readTaskFiles(
    branchesOf(async () => repository),
    rules,
  );
  const uncommitted = await uncommittedTasks(place, read);
  return { ...read, uncommitted, ...(await listedTasks(place, signal)) };
}

async function listedTasks(
  { io, project, rules: { tasks } }: TaskPlace,
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

/** Files of the folder that the checkout has and the branch does not, or with another text. */
async function uncommittedTasks(
  { repository, rules: { tasks } }: TaskPlace,
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

/** How every task stands. */
export function taskFacts(
  { rules, agents }: TaskPlace,
  written: WrittenTasks,
  claims: readonly Claim[],
): TaskFacts {
  const situation = situationOf({ ...written, claims }, rules, agents);
  const { failure } = written;
  const failed = failure ? [{ message: failure.message, hint: failure.hint }] : [];
  return {
    branch: rules.branch,
    main: written.main,
    tasks: standingsOf(situation),
    problems: [...(situation.problems ?? []), ...failed],
    uncommitted: written.uncommitted,
    howToAdd:
      rules.tasks.kind === 'folder'
        ? `write one and commit it: ${rules.tasks.folder}/<name>.md`
        : `they are what this prints: ${rules.tasks.command}`,
  };
}

export const claimsIn = async (store: EventStore | undefined): Promise<readonly Claim[]> =>
  (await store?.claims.list()) ?? [];
