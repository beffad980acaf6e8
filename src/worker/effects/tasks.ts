import { isUtf8 } from 'node:buffer';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { folderKey, refKey, requireOwner, withoutFence } from '../../engine/step/index.ts';
import type { Claim, ClaimRequest, ClaimResult, Fence, Settlement, WorkerRecord } from '../../store/index.ts';
import type { WorkerContext } from '../contract.ts';
import { withState } from '../tasks/parse.ts';
import { printedBy, readTaskFiles, type TaskFiles } from '../tasks/read.ts';
import type { TaskState } from '../tasks/task.ts';
import { type StalledRun, stalledAmong, unfinished } from '../wake.ts';
import { workerKey } from './loop.ts';

/** The claims on tasks, at a revision. */
export interface Claims {
  readonly claims: readonly Claim[];
  readonly revision: number;
  /** Runs with stalled owners; absent if there are none. */
  readonly stalled?: readonly StalledRun[] | undefined;
}

/** Activity of a worker as other workers see it. */
export type WorkerSign = Pick<WorkerRecord, 'name' | 'state' | 'task' | 'agent'>;

export interface TaskMark {
  /** Absolute path of the workspace. */
  readonly folder: string;
  /** Path of the task file, relative to the workspace. */
  readonly file: string;
  readonly state: TaskState;
}

/** Effects that read, claim and mark tasks. */
export function taskEffects({ environment, rules, branches }: WorkerContext) {
  const { world, store } = environment;
  const { branch, tasks } = rules;
  /** Result of the last read. The files are read often, mostly without a new commit on the branch. */
  let last: TaskFiles | undefined;

  return {
    /** Reads the task files on the branch. */
    readTasks: world.effect<void, TaskFiles>({
      name: 'tasks.read',
      span: 'short',
      keys: () => ({ reads: [refKey(branch)] }),
      perform: async () => {
        last = await readTaskFiles(branches, rules, last);
        return last;
      },
    }),

    /** Output of the project's `tasks.command`, or an empty string without one. Throws CANCELLED on interrupt. */
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
      perform: async () => {
        const revision = await store.claims.revision();
        const claims = await store.claims.list();
        const stalled = environment.stalledFor ? stalledAmong(await store.list(unfinished), environment) : [];
        return { revision, claims, ...(stalled.length > 0 ? { stalled } : {}) };
      },
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

    /** Lists the current activity of the other workers. */
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

    /** Writes the new state of a task into the workspace; it takes effect when the work lands. */
    markTask: world.effect<TaskMark & { readonly fence: Fence }, void>({
      name: 'task.mark',
      span: 'short',
      taped: { args: withoutFence },
      keys: ({ folder }) => ({ writes: [folderKey(folder)] }),
      perform: async ({ folder, file, state, fence }) => {
        await requireOwner(store, fence);
        const path = join(folder, file);
        const bytes = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
          if (cause.code === 'ENOENT') return undefined;
          throw new RepriseError('WORKSPACE_FAILED', `${file} cannot be read in the workspace`, { cause });
        });
        // An agent that removes the task file has marked the task as done.
        if (bytes === undefined) return;
        // Latin-1 maps every byte to one character and back, so the text of the user stays as it is in any encoding.
        const encoding = isUtf8(bytes) ? 'utf8' : 'latin1';
        const marked = withState(bytes.toString(encoding), state);
        if (marked === undefined) return;
        // A rename is atomic: a crash leaves the old or the new text, and a stray file that the next attempt replaces.
        const beside = `${path}.reprise-mark`;
        await writeFile(beside, marked, encoding);
        await rename(beside, path);
      },
    }),
  };
}

const fenceKeys = (fence: Fence | undefined): readonly string[] => (fence ? [`lease:${fence.runId}`] : []);
