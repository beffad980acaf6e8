import { join } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { EventOf, HistoryEvent } from '../core/event.ts';
import { toEpochMs } from '../core/time.ts';
import { outsideEffects } from '../engine/outside-effects.ts';
import { branchTip } from '../git/ref-files.ts';
import type { RunSummary } from '../store/port.ts';
import type { WorkerRecord } from '../store/workers.ts';
import { dispatcher, workerWorkflow } from './rules.ts';
import type { Doing } from './self.ts';
import type { Surroundings } from './surroundings.ts';
import { digestOf, printedBy } from './task-command.ts';

/** How things stood when somebody last looked. */
export interface Seen {
  /** Of the branch. */
  readonly main: string | null;
  /** Of the claims. */
  readonly revision: number;
  /** What a command printed, if one lists the tasks. */
  readonly listed?: string | undefined;
}

/** What is different from what was seen. */
export interface Change {
  readonly what: 'main' | 'claims' | 'tasks' | 'abandoned';
  readonly main: string | null;
}

/** A worker as it describes itself: what is the same for the whole process is added where it is kept. */
export type WorkerSelf = Omit<WorkerRecord, 'host' | 'pid' | 'processStart'>;

/** What a run has left behind. */
export interface LeftWork {
  /** That it had, whoever has it now. */
  readonly task?: string | undefined;
  /** Of the claim, while it is held. */
  readonly token?: number | undefined;
  readonly workspace?: { readonly path: string; readonly branch: string } | undefined;
  /** Its last commit, if it has one that its base does not have. */
  readonly commit?: string | undefined;
  /** Where it was parked already. */
  readonly parked?: string | undefined;
  readonly costUsd: number | null;
  readonly tokens: number;
}

/** What a worker does now, and what it has cost so far if that is known anew. */
export interface WorkerShow extends Doing {
  readonly incarnation: string;
  readonly costUsd?: number | null;
}

const idle = { task: undefined, agent: undefined, runId: undefined, note: undefined };

const pollMs = 500;
/** A command is asked less often than files are looked at. */
const listEvery = 20;

/** How a worker goes on from task to task. */
export function loopEffects({ environment, rules, repository }: Surroundings) {
  const { world, clock, ids, store, self } = environment;
  const { branch, tasks } = rules;

  const isAbandoned = ({ owner }: RunSummary, now: number): boolean =>
    owner === null ||
    toEpochMs(owner.expiresAt) <= now ||
    (owner.host === self.host && !environment.isAlive(owner));

  const abandoned = async (now: number): Promise<readonly string[]> => {
    const unfinished = await store.list({ workflow: workerWorkflow, status: 'running' });
    return unfinished
      .filter(run => isAbandoned(run, now))
      .map(({ runId }) => runId)
      .reverse();
  };

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
      keys: () => ({ writes: ['workers'] }),
      perform: async ({ isNamed, ...worker }) => {
        const others = await store.workers.list();
        for (const other of others)
          if (other.host === self.host && !environment.isAlive(other))
            await store.workers.remove(other.incarnation);
        const taken = new Set(
          others
            .filter(other => other.host !== self.host || environment.isAlive(other))
            .map(({ name }) => name),
        );
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
      keys: () => ({ writes: ['workers'] }),
      perform: ({ incarnation, ...doing }) =>
        update(incarnation, worker => ({ ...worker, ...idle, ...doing })),
    }),

    /** A sign of life. */
    beat: world.effect<{ readonly incarnation: string; readonly beatAt: string }, void>({
      name: 'worker.beat',
      span: 'short',
      answer: 'inside',
      keys: () => ({ writes: ['workers'] }),
      perform: ({ incarnation, beatAt }) => update(incarnation, worker => ({ ...worker, beatAt })),
    }),

    dismiss: world.effect<string, void>({
      name: 'worker.dismiss',
      span: 'short',
      answer: 'inside',
      keys: () => ({ writes: ['workers'] }),
      perform: incarnation => store.workers.remove(incarnation),
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
      keys: () => ({ reads: ['store'] }),
      perform: abandoned,
    }),

    /** What a run has left behind, from its history. */
    leftWork: world.effect<string, LeftWork>({
      name: 'runs.left-work',
      span: 'short',
      answer: 'inside',
      keys: runId => ({ reads: [`store:${runId}`] }),
      perform: async runId => {
        const { place, ...left } = leftOf(await store.read(runId));
        const claim = (await store.claims.list()).find(each => each.runId === runId && each.state === 'held');
        const tip = place && (await branchTip(await repository(), place.branch));
        return {
          ...left,
          ...(claim ? { task: claim.task, token: claim.token } : {}),
          ...(place
            ? { workspace: { path: join(environment.projectRoot, place.path), branch: place.branch } }
            : {}),
          ...(tip === undefined || tip === place?.base ? {} : { commit: tip }),
        };
      },
    }),

    /** Waits until something is different from what was seen. */
    changed: world.effect<Seen, Change>({
      name: 'main_head_sha',
      span: 'long',
      keys: () => ({}),
      perform: async (seen, { signal }) => {
        for (let looked = 0; ; looked++) {
          const main = (await branchTip(await repository(), branch)) ?? null;
          if (main !== seen.main) return { what: 'main', main };
          if ((await store.claims.revision()) !== seen.revision) return { what: 'claims', main };
          if ((await abandoned(clock.now())).length > 0) return { what: 'abandoned', main };
          if (tasks.kind === 'command' && looked > 0 && looked % listEvery === 0) {
            // One that fails now and then is no reason to wake up.
            const listed = await printedBy(environment, tasks.command, signal).catch(() => undefined);
            if (listed !== undefined && digestOf(listed) !== seen.listed) return { what: 'tasks', main };
          }
          await clock.waitUntil(clock.now() + pollMs, signal);
        }
      },
    }),
  };
}

function firstFree(stem: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) if (!taken.has(`${stem}-${number}`)) return `${stem}-${number}`;
}

type Place = Pick<EventOf<'workspace.created'>['data'], 'path' | 'branch' | 'base'>;

function leftOf(
  history: readonly HistoryEvent[],
): Pick<LeftWork, 'task' | 'parked' | 'costUsd' | 'tokens'> & { readonly place?: Place } {
  let place: Place | undefined;
  let task: string | undefined;
  let parked: string | undefined;
  let costUsd: number | null = 0;
  let tokens = 0;
  for (const event of history) {
    if (event.type === 'workspace.created') place = event.data;
    else if (event.type === 'transition.taken' && event.data.from === dispatcher)
      task = event.data.args?.['task'];
    else if (event.type === 'landing.parked') parked = event.data.branch;
    else if (event.type === 'session.ended') {
      const { usage } = event.data;
      costUsd = usage.costUsd === null || costUsd === null ? null : costUsd + usage.costUsd;
      tokens += usage.inputTokens + usage.outputTokens;
    }
  }
  return {
    ...(place ? { place } : {}),
    ...(task === undefined ? {} : { task }),
    ...(parked === undefined ? {} : { parked }),
    costUsd,
    tokens,
  };
}
