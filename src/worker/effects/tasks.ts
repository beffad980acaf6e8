import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { folderKey, refKey } from '../../engine/step/index.ts';
import type { Claim, ClaimRequest, ClaimResult, Fence, Settlement, WorkerRecord } from '../../store/index.ts';
import type { WorkerContext } from '../contract.ts';
import { withState } from '../tasks/parse.ts';
import { printedBy, readTaskFiles, type TaskFiles } from '../tasks/read.ts';
import type { TaskState } from '../tasks/task.ts';
import { workerKey } from './loop.ts';

/** Who has which task, and how far that is known. */
export interface Claims {
  readonly claims: readonly Claim[];
  readonly revision: number;
}

/** What a worker shows of itself to others. */
export type WorkerSign = Pick<WorkerRecord, 'name' | 'state' | 'task' | 'agent'>;

export interface TaskMark {
  /** Of the workspace, absolute. */
  readonly folder: string;
  /** Relative to it. */
  readonly file: string;
  readonly state: TaskState;
}

/** What there is to do, and who does it. */
export function taskEffects({ environment, rules, branches }: WorkerContext) {
  const { world, store } = environment;
  const { branch, tasks } = rules;
  /** Looked at again and again, mostly where nothing has moved. */
  let last: TaskFiles | undefined;

  return {
    /** The tasks as they are written on the branch. */
    readTasks: world.effect<void, TaskFiles>({
      name: 'tasks.read',
      span: 'short',
      keys: () => ({ reads: [refKey(branch)] }),
      perform: async () => {
        last = await readTaskFiles(branches, rules, last);
        return last;
      },
    }),

    /** What the command of the project prints; empty without one. Throws CANCELLED if this process is to stop. */
    listTasks: world.effect<AbortSignal | undefined, string>({
      name: 'tasks.list',
      span: 'long',
      answer: 'tape',
      taped: { args: () => undefined },
      perform: (interrupt, { signal }) =>
        tasks.kind === 'command'
          ? printedBy(environment, tasks.command, signal, ...(interrupt ? [interrupt] : []))
          : '',
    }),

    readClaims: world.effect<void, Claims>({
      name: 'claims.list',
      span: 'short',
      answer: 'inside',
      keys: () => ({ reads: ['claim:'] }),
      perform: async () => ({ revision: await store.claims.revision(), claims: await store.claims.list() }),
    }),

    takeClaim: world.effect<ClaimRequest, ClaimResult>({
      name: 'claim.take',
      span: 'short',
      answer: 'inside',
      taped: { args: withoutFence },
      keys: ({ task, fence }) => ({ reads: fenceKeys(fence), writes: [`claim:${task}`] }),
      perform: request => store.claims.take(request),
    }),

    settleClaim: world.effect<Settlement, boolean>({
      name: 'claim.settle',
      span: 'short',
      answer: 'inside',
      taped: { args: withoutFence },
      keys: ({ task, fence }) => ({ reads: fenceKeys(fence), writes: [`claim:${task}`] }),
      perform: settlement => store.claims.settle(settlement),
    }),

    /** What the other workers say that they are doing. */
    otherWorkers: world.effect<string, readonly WorkerSign[]>({
      name: 'workers.list',
      span: 'short',
      answer: 'inside',
      keys: () => ({ reads: [workerKey('')] }),
      perform: async incarnation =>
        (await store.workers.list())
          .filter(other => other.incarnation !== incarnation && environment.isAlive(other))
          .map(({ name, state, task, agent }) => ({
            name,
            state,
            ...(task === undefined ? {} : { task }),
            ...(agent === undefined ? {} : { agent }),
          })),
    }),

    /** Writes into a workspace what becomes true when its work lands. */
    markTask: world.effect<TaskMark, void>({
      name: 'task.mark',
      span: 'short',
      keys: ({ folder }) => ({ writes: [folderKey(folder)] }),
      perform: async ({ folder, file, state }) => {
        const path = join(folder, file);
        const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
          if (cause.code === 'ENOENT') return undefined;
          throw new RepriseError('WORKSPACE_FAILED', `${file} cannot be read in the workspace`, { cause });
        });
        // Whoever removes the file of a task says by it that the task is done.
        const marked = text === undefined ? undefined : withState(text, state);
        if (marked === undefined) return;
        // Whoever is killed here leaves the old text or the new one, and a file that the next attempt replaces.
        const beside = `${path}.reprise-mark`;
        await writeFile(beside, marked);
        await rename(beside, path);
      },
    }),
  };
}

const fenceKeys = (fence: Fence | undefined): readonly string[] => (fence ? [`lease:${fence.runId}`] : []);

/** Who owns a run is on the tape once, where the run was taken. */
const withoutFence = <T extends { readonly fence?: Fence | undefined }>({
  fence: _,
  ...rest
}: T): Omit<T, 'fence'> => rest;
