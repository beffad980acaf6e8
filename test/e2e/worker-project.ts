import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readLock } from '../../src/git/lock.ts';
import type { EventStore } from '../../src/store/port.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { stateOf } from '../support/state.ts';
import { type AgentProject, agentProject } from './agent-project.ts';
import type { CliOptions, Files, RunningCli } from './run-inline.ts';

/** Repository with tasks, in which workers run as processes. */
export interface WorkerProject extends AgentProject {
  /** Starts `reprise worker`. */
  worker(args?: readonly string[], options?: CliOptions): RunningCli;
  /** Ids of the tasks whose commits are on main, in landing order. */
  landed(): readonly string[];
  /** Reads the store, even while workers write to it. */
  inStore<T>(look: (store: EventStore) => Promise<T>): Promise<T>;
  /** Everything that must be gone once no worker is busy. */
  leftovers(): Promise<Leftovers>;
}

export interface Leftovers {
  readonly worktrees: readonly string[];
  readonly branches: readonly string[];
  readonly locks: readonly string[];
  readonly claims: readonly string[];
  readonly processes: readonly number[];
}

export const nothingLeft: Leftovers = { worktrees: [], branches: [], locks: [], claims: [], processes: [] };

export interface WorkerProjectOptions {
  /** Shell scripts by name, as in `agentProject`. */
  readonly agents?: Files | undefined;
  /** Texts of the tasks by id. */
  readonly tasks?: Files | undefined;
  readonly files?: Files | undefined;
  /** Further lines of reprise.yaml. */
  readonly config?: string | undefined;
}

export function workerProject({
  agents = {},
  tasks = {},
  files = {},
  config = '',
}: WorkerProjectOptions): WorkerProject {
  const texts = Object.entries(tasks).map(([id, text]) => [`issues/${id}.md`, text]);
  const project = agentProject({ agents, config, files: { ...Object.fromEntries(texts), ...files } });
  const { root, git, begin } = project;
  const inStore: WorkerProject['inStore'] = async look => {
    const store = await openSqliteStore({ file: join(root, stateOf(root), 'reprise.db'), readonly: true });
    try {
      return await look(store);
    } finally {
      await store.close();
    }
  };
  return {
    ...project,
    inStore,
    worker: (args = [], options) => begin(['worker', ...args], options),
    landed: () =>
      git('log', '--reverse', '--format=%(trailers:key=Task,valueonly,separator=%x2C)', 'main')
        .split('\n')
        .filter(Boolean),
    leftovers: async () => ({
      worktrees: git('worktree', 'list', '--porcelain')
        .split('\n')
        .filter(line => line.startsWith('worktree ') && line !== `worktree ${root}`),
      branches: git('branch', '--format=%(refname:short)').split('\n').filter(isOfRuns),
      locks: heldLocks(join(root, '.git/reprise/locks')),
      claims: await inStore(async store =>
        (await store.claims.list()).flatMap(({ task, state }) => (state === 'held' ? task : [])),
      ),
      processes: project.leftRunning(),
    }),
  };
}

/** Whether a branch belongs to a run. Parked branches stay on purpose. */
const isOfRuns = (branch: string): boolean =>
  branch.startsWith('reprise/') && !branch.startsWith('reprise/parked/');

/**
 * Folders of locks, at any depth, whose holder is alive or died without releasing them. The lock by which a process proves
 * that it lives is never released by a killed process, so it counts only while its holder lives.
 */
function heldLocks(folder: string): readonly string[] {
  const inside = entriesOf(folder);
  const isLock = inside.some(({ name }) => name === 'mutex');
  if (isLock) {
    const { kind } = readLock(folder);
    const isLife = basename(dirname(folder)) === 'owners';
    return kind === 'free' || (isLife && kind !== 'held') ? [] : [folder];
  }
  return inside.filter(each => each.isDirectory()).flatMap(({ name }) => heldLocks(join(folder, name)));
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Texts of `count` distinct tasks by id. */
export const manyTasks = (count: number): Files =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => {
      const id = `t${String(index + 1).padStart(3, '0')}`;
      return [id, `# Task ${id}\n\nWrite ${id}.txt.\n`];
    }),
  );

/** Log of a worker without times and without ids that differ between runs. */
export const saidBy = (project: WorkerProject, text: string): string =>
  project.stable(text.replace(/\b(landed|onto) [0-9a-f]{10}\b/g, '$1 <commit>')).replaceAll('<time> ', '');
