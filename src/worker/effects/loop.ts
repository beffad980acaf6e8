import { RepriseError } from '../../core/index.ts';
import { keysOfClaims, outsideEffects } from '../../engine/index.ts';
import type { WorkerRecord } from '../../store/index.ts';
import { type UnfinishedWork, unfinishedWorkOf } from '../abandon.ts';
import type { WorkerActivity, WorkerContext } from '../contract.ts';
import { digestOf, printedBy } from '../tasks/read.ts';
import {
  abandonedAmong,
  type ChangeQuery,
  differenceFrom,
  isDifferent,
  unfinished,
  type WakeReason,
  type WakeSnapshot,
} from '../wake.ts';

/** A worker as it describes itself: what is the same for the whole process is added where it is kept. */
export type WorkerSelf = Omit<WorkerRecord, 'host' | 'pid' | 'processStart'>;

/** What a worker does now, and what it has cost so far if that is known anew. */
export interface WorkerShow extends WorkerActivity {
  readonly incarnation: string;
  readonly costUsd?: number | null;
}

const idle = { task: undefined, agent: undefined, runId: undefined, note: undefined };

const pollMs = 500;
/** A command is asked less often than files are looked at. */
const listEvery = 20;

/** How a worker goes on from task to task. */
export function loopEffects({ environment, rules, branches }: WorkerContext) {
  const { world, clock, ids, store, self } = environment;
  const { branch, tasks } = rules;

  const difference = async ({ seen, now }: ChangeQuery) =>
    differenceFrom(seen, {
      main: await branches.tip(branch),
      revision: await store.claims.revision(),
      abandoned: abandonedAmong(await store.list(unfinished), { ...environment, now }),
    });

  const isDead = (worker: WorkerRecord): boolean => worker.host === self.host && !environment.isAlive(worker);
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

    /** Adds a worker under a name that no other has. Throws USAGE if the name is taken. */
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
          throw new RepriseError('USAGE', `there is a worker named ${worker.name} already`, {
            hint: 'choose another name, or see what it does: reprise status',
          });
        }
        const name = isNamed ? worker.name : firstFree(worker.name, taken);
        await store.workers.put({ ...self, ...worker, name });
        return name;
      },
    }),

    /** Says what a worker does now. */
    showWorker: world.effect<WorkerShow, void>({
      name: 'worker.show',
      span: 'short',
      answer: 'inside',
      keys: ({ incarnation }) => ({ writes: [workerKey(incarnation)] }),
      perform: ({ incarnation, ...doing }) =>
        update(incarnation, worker => ({ ...worker, ...idle, ...doing })),
    }),

    /** A sign of life. */
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

    /** Whether somebody has asked this process to stop. */
    isStopped: world.effect<AbortSignal, boolean>({
      name: 'keyboard.stopped',
      span: 'short',
      answer: 'tape',
      taped: { args: () => undefined },
      perform: interrupt => interrupt.aborted,
    }),

    /** Runs of workers that nobody is at work on any more, oldest first. */
    abandonedRuns: world.effect<number, readonly string[]>({
      name: 'runs.abandoned',
      span: 'short',
      answer: 'inside',
      keys: () => ({ reads: ['abandoned:'] }),
      perform: async now => abandonedAmong(await store.list(unfinished), { ...environment, now }),
    }),

    /** What a run has left behind, from its history. */
    leftWork: world.effect<string, UnfinishedWork>({
      name: 'runs.left-work',
      span: 'short',
      answer: 'inside',
      keys: runId => ({ reads: [`store:${runId}`, ...keysOfClaims(store, runId)] }),
      perform: runId => unfinishedWorkOf(environment, runId),
    }),

    /** Waits until something is different from what was seen; `tasks` if a command lists other tasks. */
    changed: world.effect<WakeSnapshot, 'tasks' | 'something'>({
      name: 'main_head_sha',
      span: 'long',
      awaits: {
        keys: () => ({ reads: [`ref:${branch}`, 'claim:', 'abandoned:', 'clock'] }),
        // What a command would print, nobody can tell at once.
        isOver: seen =>
          tasks.kind === 'command' ||
          isDifferent(seen, { ...environment, now: clock.now() }, branches.tipNow(branch)),
      },
      perform: async (seen, { signal }) => {
        for (let looked = 0; ; looked++) {
          if (await difference({ seen, now: clock.now() })) return 'something';
          if (tasks.kind === 'command' && looked > 0 && looked % listEvery === 0) {
            // One that fails now and then is no reason to wake up.
            const listed = await printedBy(environment, tasks.command, signal).catch(() => undefined);
            if (listed !== undefined && digestOf(listed) !== seen.listed) return 'tasks';
          }
          await clock.waitUntil(clock.now() + pollMs, signal);
        }
      },
    }),

    /** What is different from what was seen. Whoever waited saw some of it in the middle of what others did. */
    whatChanged: world.effect<ChangeQuery, WakeReason | null>({
      name: 'worker.wake',
      span: 'short',
      keys: () => ({ reads: [`ref:${branch}`, 'claim:', 'abandoned:'] }),
      perform: difference,
    }),
  };
}

/** Of one worker; without an incarnation, of all. */
export const workerKey = (incarnation: string): string => `worker:${incarnation}`;

/** Of one name; without one, of all. */
const nameKey = (name: string): string => `name:${name}`;

function firstFree(stem: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) if (!taken.has(`${stem}-${number}`)) return `${stem}-${number}`;
}
