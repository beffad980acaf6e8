import { existsSync } from 'node:fs';
import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { type Timestamp, toEpochMs } from '../core/time.ts';
import { isAlive, thisProcess } from '../process/table.ts';
import type { EventStore, RunStatus, RunSummary } from '../store/port.ts';
import type { RunView } from '../view/run-view.ts';
import type { StepProgress, WorkspaceProgress } from '../view/step-progress.ts';
import { openStore, storeFile } from './open-engine.ts';
import type { Project } from './project.ts';

export type StoreMode = 'readonly' | 'writable';

/** The store of the project, if anything was ever run there. Throws STORE_FAILED. */
export async function openStoredRuns(project: Project, mode: StoreMode): Promise<EventStore | undefined> {
  const { stateDir, host } = project;
  const readonly = mode === 'readonly';
  if (host?.openStore) return host.openStore(stateDir, { readonly });
  if (!existsSync(storeFile(stateDir))) return undefined;
  try {
    return await openStore(stateDir, { readonly });
  } catch (error) {
    // Somebody makes it right now.
    if (error instanceof RepriseError && error.code === 'STORE_EMPTY') return undefined;
    throw error;
  }
}

/** Opens the store for as long as `work` takes. Throws RUN_NOT_FOUND if nothing was ever run in the project. */
export async function withStoredRuns<T>(
  { project, mode }: { readonly project: Project; readonly mode: StoreMode },
  work: (store: EventStore) => Promise<T>,
): Promise<T> {
  const store = await openStoredRuns(project, mode);
  if (!store) throw nothingRun();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The run with that id or beginning of an id; without one, the newest. Throws RUN_NOT_FOUND, RUN_AMBIGUOUS. */
export async function selectRun(store: EventStore, reference: string | undefined): Promise<RunSummary> {
  if (reference === undefined) {
    const [newest] = await store.list({ limit: 1 });
    if (!newest) throw nothingRun();
    return newest;
  }
  if (reference === '')
    throw new RepriseError('USAGE', 'the id of the run is empty', {
      hint: 'see which runs there are: reprise list',
    });
  const found = await store.find(reference);
  const exact = found.find(({ runId }) => runId === reference);
  const [only, ...others] = found;
  if (exact) return exact;
  if (!only) {
    throw new RepriseError('RUN_NOT_FOUND', `there is no run ${reference}`, {
      hint: 'see which runs there are: reprise list',
    });
  }
  if (others.length === 0) return only;
  const lines = found.map(({ runId, workflow, startedAt }) => `  ${runId}  ${workflow}  ${startedAt}`);
  throw new RepriseError('RUN_AMBIGUOUS', `several runs start with ${reference}:\n${lines.join('\n')}`, {
    hint: 'type more of the id',
  });
}

type RunOwner = NonNullable<RunSummary['owner']>;

/** Whether somebody works on a run. Only `held` keeps others from taking it. */
export type Ownership =
  | { readonly kind: 'free' }
  | { readonly kind: 'held'; readonly owner: RunOwner }
  | { readonly kind: 'expired' | 'dead'; readonly owner: RunOwner };

export function ownershipOf({ owner }: RunSummary, now: number): Ownership {
  if (!owner) return { kind: 'free' };
  if (toEpochMs(owner.expiresAt) <= now) return { kind: 'expired', owner };
  if (owner.host === thisProcess().host && !isAlive(owner)) return { kind: 'dead', owner };
  return { kind: 'held', owner };
}

/** `interrupted`: it had not ended when its process did. */
export type StandingStatus = RunStatus | 'interrupted';

export const standingStatus = (run: RunSummary, now: number): StandingStatus =>
  run.status === 'running' && ownershipOf(run, now).kind !== 'held' ? 'interrupted' : run.status;

export const hasEnded = ({ status }: { readonly status: RunStatus }): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled';

/** Throws RUN_ENDED: there is nothing that could take the message. */
export function requireNotEnded({ runId, status, endedAt }: RunSummary, what: string): void {
  if (!hasEnded({ status })) return;
  throw new RepriseError(
    'RUN_ENDED',
    `run ${runId} has ${endedWords[status]}${at(endedAt)}, so there is nothing to ${what}`,
    {
      hint: `see how it went: reprise show ${runId}`,
    },
  );
}

const endedWords: Readonly<Record<RunStatus, string>> = {
  running: 'not ended',
  suspended: 'not ended',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'been cancelled',
};

const at = (time: Timestamp | null): string => (time ? ` at ${time}` : '');

const nothingRun = () =>
  new RepriseError('RUN_NOT_FOUND', 'nothing has been run in this project yet', {
    hint: 'start a workflow: reprise run <workflow>',
  });

/** The step or worker that a person names: `fix`, `fix:1`, `fix:1/build`. Throws USAGE. */
export function selectUnit(view: RunView, reference: string): StepProgress {
  const found = view.step(reference);
  if (found) return found;
  const paths = view.steps.map(({ path }) => path);
  const guess = nearest(reference, paths);
  const [, step = ''] = /^(.*):\d+$/.exec(reference) ?? [];
  const workers = view.step(step)?.children.filter(({ isWorker }) => isWorker) ?? [];
  const hint =
    workers.length > 0
      ? `the workers of ${step} are ${listed(workers.map(({ path }) => path))}`
      : guess
        ? `did you mean ${guess}?`
        : `the steps of the run are ${listed(paths)}`;
  throw new RepriseError('USAGE', `run ${view.runId} has no step ${reference}`, { hint });
}

const mostNames = 10;

export const listed = (names: readonly string[]): string =>
  names.length <= mostNames
    ? names.join(', ')
    : `${names.slice(0, mostNames).join(', ')} and ${names.length - mostNames} more`;

/** A step or worker that has a workspace of its own. */
export interface UnitWork {
  readonly step: StepProgress;
  readonly workspace: WorkspaceProgress;
}

/** What a person means by a step: its own workspace, or that of the worker that was selected. Throws USAGE. */
export function unitWork(view: RunView, reference: string, command: string): UnitWork {
  const named = selectUnit(view, reference);
  const { selection } = named.work;
  const step = selection ? (view.step(`${named.path}:${selection.winner}`) ?? named) : named;
  const { workspace } = step.work;
  if (workspace) return { step, workspace };
  const inside = view.steps.filter(({ path, work }) => work.workspace && path.startsWith(`${step.path}:`));
  const example = inside[0];
  if (example) {
    throw new RepriseError(
      'USAGE',
      `${step.path} has ${inside.length} workers with work of their own: ${listed(inside.map(({ path }) => path))}`,
      { hint: `name one: reprise ${command} ${view.runId} ${example.path}` },
    );
  }
  const others = view.steps.filter(({ work }) => work.workspace).map(({ path }) => path);
  throw new RepriseError('USAGE', `${step.path} of run ${view.runId} has no workspace of its own`, {
    hint: others.length > 0 ? `these have one: ${listed(others)}` : 'no step of the run has one',
  });
}
