import { RepriseError } from '../../core/index.ts';
import { keysOfClaims, outsideEffects } from '../../engine/index.ts';
import type { RunSummary, WorkerRecord } from '../../store/index.ts';
import { type UnfinishedWork, unfinishedWorkOf } from '../abandon.ts';
import type { WorkerActivity, WorkerContext } from '../contract.ts';
import { digestOf, printedBy } from '../tasks/read.ts';
import {
  abandonedAmong,
  answeredAmong,
  type ChangeQuery,
  differenceFrom,
  isDifferent,
  stalledAmong,
  stallMark,
  unfinished,
  type WakeReason,
  type WakeSnapshot,
  waitingRuns,
} from '../wake.ts';

/** Fields of a worker record that the worker itself provides; the store entry adds those of the process. */
export type WorkerSelf = Omit<WorkerRecord, 'host' | 'pid' | 'processStart'>;

/** Current activity of a worker, with its cost so far if that has changed. */
export interface WorkerShow extends WorkerActivity {
  readonly incarnation: string;
  readonly costUsd?: number | null;
}

export interface StopQuery {
  readonly interrupt: AbortSignal;
  /** Incarnation of a worker that wants to take a task. */
  readonly worker?: string | undefined;
}

const idle = { task: undefined, agent: undefined, runId: undefined, note: undefined };

const pollMs = 500;
/** Number of polls between two runs of the command that lists tasks. */
const listEvery = 20;

/** Effects of the loop that runs a worker's tasks. */
export function loopEffects({ environment, rules, branches, purse }: WorkerContext) {
  const { world, clock, ids, store, self } = environment;
  const { branch, tasks, taskBudget } = rules;

  const abandonedIn = async (runs: readonly RunSummary[]): Promise<readonly string[]> => [
    ...abandonedAmong(runs, { ...environment, taskBudget }),
    ...(await answeredAmong(await store.list(waitingRuns), { ...environment, taskBudget })),
  ];
  const difference = async ({ seen }: Pick<ChangeQuery, 'seen'>) => {
    const runs = await store.list(unfinished);
    return differenceFrom(seen, {
      main: await branches.tip(branch),
      revision: await store.claims.revision(),
      abandoned: await abandonedIn(runs),
      stalled: stallMark(stalledAmong(runs, environment)),
    });
  };

  const isDead = (worker: WorkerRecord): boolean => !environment.isAlive(worker);
  const dead = (): readonly string[] =>
    store.glance
      ? store.glance
          .workers()
          .filter(isDead)
          .map(({ incarnation }) => incarnation)
      : [''];

  const update = async (
    incarnation: string,
    change: (worker: WorkerRecord) => WorkerRecord,
  ): Promise<void> => {
    const worker = (await store.workers.list()).find(each => each.incarnation === incarnation);
    if (worker) await store.workers.put(change(worker));
  };

  return {
    ...outsideEffects({ world, clock }),

    newIncarnation: world.effect<void, { readonly incarnation: string }>({
      name: 'ids.new',
      span: 'short',
      answer: 'tape',
      perform: () => ({ incarnation: ids.incarnation() }),
    }),

    /** Registers a worker under a unique name. Throws USAGE if the requested name is taken. */
    enlist: world.effect<WorkerSelf & { readonly isNamed: boolean }, string>({
      name: 'worker.enlist',
      span: 'short',
      answer: 'inside',
      keys: ({ isNamed, name, incarnation }) => ({
        writes: [nameKey(isNamed ? name : ''), ...[incarnation, ...dead()].map(workerKey)],
      }),
      perform: async ({ isNamed, ...worker }) => {
        const others = await store.workers.list();
        for (const other of others.filter(isDead)) await store.workers.remove(other.incarnation);
        const taken = new Set(others.filter(other => !isDead(other)).map(({ name }) => name));
        if (isNamed && taken.has(worker.name)) {
          throw new RepriseError('USAGE', `a worker named ${worker.name} is already running`, {
            hint: 'choose another name, or inspect the running worker: reprise status',
          });
        }
        const name = isNamed ? worker.name : firstFree(worker.name, taken);
        await store.workers.put({ ...self, ...worker, name });
        return name;
      },
    }),

    /** Publishes the current activity of a worker. */
    showWorker: world.effect<WorkerShow, void>({
      name: 'worker.show',
      span: 'short',
      answer: 'inside',
      keys: ({ incarnation }) => ({ writes: [workerKey(incarnation)] }),
      perform: ({ incarnation, ...doing }) =>
        update(incarnation, worker => ({ ...worker, ...idle, ...doing })),
    }),

    /** Records a heartbeat. */
    beat: world.effect<{ readonly incarnation: string; readonly beatAt: string }, void>({
      name: 'worker.beat',
      span: 'short',
      upkeep: true,
      answer: 'inside',
      keys: ({ incarnation }) => ({ writes: [workerKey(incarnation)] }),
      perform: ({ incarnation, beatAt }) => update(incarnation, worker => ({ ...worker, beatAt })),
    }),

    dismiss: world.effect<Pick<WorkerRecord, 'incarnation' | 'name'>, void>({
      name: 'worker.dismiss',
      span: 'short',
      answer: 'inside',
      keys: ({ incarnation, name }) => ({ writes: [nameKey(name), workerKey(incarnation)] }),
      perform: ({ incarnation }) => store.workers.remove(incarnation),
    }),

    /** Limits that the workers of the process share. Only the effects of this room and observers use it. */
    purse,

    /** Returns whether this process was asked to stop, or else the limit that keeps the worker from taking a task. */
    mustStop: world.effect<StopQuery, boolean | 'max-tasks' | 'budget'>({
      name: 'keyboard.stopped',
      span: 'short',
      answer: 'tape',
      taped: { args: () => undefined },
      perform: ({ interrupt, worker }) =>
        interrupt.aborted || (worker !== undefined && purse.reached(worker)) || false,
    }),

    /** Lists abandoned worker runs, oldest first. */
    abandonedRuns: world.effect<number, readonly string[]>({
      name: 'runs.abandoned',
      span: 'short',
      answer: 'inside',
      keys: () => ({ reads: ['abandoned:'] }),
      perform: async () => abandonedIn(await store.list(unfinished)),
    }),

    /** Reads the unfinished work of a run from its history. */
    unfinishedWork: world.effect<string, UnfinishedWork>({
      name: 'runs.left-work',
      span: 'short',
      answer: 'inside',
      keys: runId => ({ reads: [`store:${runId}`, ...keysOfClaims(store, runId)] }),
      perform: runId => unfinishedWorkOf(environment, runId),
    }),

    /** Waits until the state differs from the one seen. Returns `tasks` if the command lists other tasks. */
    changed: world.effect<WakeSnapshot, 'tasks' | 'something'>({
      name: 'main_head_sha',
      span: 'long',
      awaits: {
        keys: () => ({ reads: [`ref:${branch}`, 'claim:', 'abandoned:'] }),
        // The output of a command cannot be known without running it.
        isOver: seen =>
          tasks.kind === 'command' ||
          isDifferent(seen, { ...environment, taskBudget }, branches.tipNow(branch)),
      },
      perform: async (seen, { signal }) => {
        for (let looked = 0; ; looked++) {
          if (await difference({ seen })) return 'something';
          if (tasks.kind === 'command' && looked > 0 && looked % listEvery === 0) {
            // An occasional failure of the command is no reason to wake up.
            const listed = await printedBy(environment, tasks.command, signal).catch(() => undefined);
            if (listed !== undefined && digestOf(listed) !== seen.listed) return 'tasks';
          }
          await clock.waitUntil(clock.now() + pollMs, signal);
        }
      },
    }),

    /** Compares again after a wait, because the wait may have seen another process's change half done. */
    whatChanged: world.effect<ChangeQuery, WakeReason | null>({
      name: 'worker.wake',
      span: 'short',
      keys: () => ({ reads: [`ref:${branch}`, 'claim:', 'abandoned:'] }),
      perform: difference,
    }),
  };
}

/** Conflict key of one worker; of all workers if the incarnation is empty. */
export const workerKey = (incarnation: string): string => `worker:${incarnation}`;

/** Conflict key of one worker name; of all names if it is empty. */
const nameKey = (name: string): string => `name:${name}`;

function firstFree(stem: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) if (!taken.has(`${stem}-${number}`)) return `${stem}-${number}`;
}
