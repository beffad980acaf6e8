import { nearest, RepriseError, type Timestamp } from '../core/index.ts';
import { isOwnerAlive, stalledFor } from '../git/index.ts';
import type { EventStore, RunStatus, RunSummary } from '../store/index.ts';
import type { RunView, StepProgress, WorkspaceProgress } from '../view/index.ts';
import { openState, type StoreMode } from './open-state.ts';
import type { Project } from './project.ts';
import { isStoreThere } from './state.ts';

/**
 * Opens the store of the project, or of all projects of the repository. Resolves to `undefined` if there is none yet.
 * Throws STORE_FAILED.
 */
export async function openStoredRuns(
  project: Project,
  mode: StoreMode,
  { all }: { readonly all?: boolean | undefined } = {},
): Promise<EventStore | undefined> {
  const { stateDir, state, host, root, env } = project;
  if (host?.openStore) return host.openStore(stateDir, { readonly: mode === 'readonly' });
  if (mode === 'readonly' || isStoreThere(stateDir)) return openState({ state, root, env, mode, all });
  // Only a command that starts something creates the store.
  const earlier = await openState({ state, root, env, mode: 'readonly' });
  await earlier?.close();
  return earlier && openState({ state, root, env, mode, all });
}

/** Opens the store while `work` runs. Throws RUN_NOT_FOUND if the project has no runs. */
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

/** Finds a run by id or prefix. Defaults to the newest run. Throws RUN_NOT_FOUND, RUN_AMBIGUOUS. */
export async function selectRun(store: EventStore, reference: string | undefined): Promise<RunSummary> {
  if (reference === undefined) {
    const [newest] = await store.list({ limit: 1 });
    if (!newest) throw nothingRun();
    return newest;
  }
  if (reference === '')
    throw new RepriseError('USAGE', 'the id of the run is empty', {
      hint: 'list all runs: reprise list',
    });
  const found = await store.find(reference);
  const exact = found.find(({ runId }) => runId === reference);
  const [only, ...others] = found;
  if (exact) return exact;
  if (!only) {
    throw new RepriseError('RUN_NOT_FOUND', `cannot find run ${reference}`, {
      hint: 'list all runs: reprise list',
    });
  }
  if (others.length === 0) return only;
  const lines = found.map(({ runId, workflow, startedAt }) => `  ${runId}  ${workflow}  ${startedAt}`);
  throw new RepriseError('RUN_AMBIGUOUS', `several runs start with ${reference}:\n${lines.join('\n')}`, {
    hint: 'type more characters of the id',
  });
}

type SummaryOwner = NonNullable<RunSummary['owner']>;

/** Ownership of a run. Only `held` prevents other processes from taking it over. */
export type Ownership =
  | { readonly kind: 'free' }
  | {
      readonly kind: 'held';
      readonly owner: SummaryOwner;
      /** Time for which the owner has been stalled, in milliseconds. */
      readonly stalledMs?: number | undefined;
    }
  | { readonly kind: 'dead'; readonly owner: SummaryOwner };

export function ownershipOf({ owner }: RunSummary, { stateDir }: Pick<Project, 'stateDir'>): Ownership {
  if (!owner) return { kind: 'free' };
  if (!isOwnerAlive(stateDir, owner)) return { kind: 'dead', owner };
  return { kind: 'held', owner, stalledMs: stalledFor(stateDir, owner) };
}

/** `interrupted`: the process ended before the run did. */
export type ShownStatus = RunStatus | 'interrupted';

export const shownStatus = (run: RunSummary, project: Pick<Project, 'stateDir'>): ShownStatus =>
  run.status === 'running' && ownershipOf(run, project).kind !== 'held' ? 'interrupted' : run.status;

export const hasEnded = ({ status }: { readonly status: RunStatus }): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled';

/** Throws RUN_ENDED if the run has ended and can no longer receive messages. */
export function requireNotEnded({ runId, status, endedAt }: RunSummary, what: string): void {
  if (!hasEnded({ status })) return;
  throw new RepriseError(
    'RUN_ENDED',
    `run ${runId} ${endedWords[status]}${at(endedAt)}, so there is nothing to ${what}`,
    {
      hint: `see the result: reprise show ${runId}`,
    },
  );
}

const endedWords: Readonly<Record<RunStatus, string>> = {
  running: 'has not ended',
  waiting: 'has not ended',
  suspended: 'has not ended',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'was cancelled',
};

const at = (time: Timestamp | null): string => (time ? ` at ${time}` : '');

const nothingRun = () =>
  new RepriseError('RUN_NOT_FOUND', 'this project has no runs yet', {
    hint: 'start a workflow: reprise run <workflow>',
  });

/** Finds a step or a copy of it: `fix`, `fix:1`, `fix:1/build`. Throws USAGE. */
export function selectUnit(view: RunView, reference: string): StepProgress {
  const found = view.step(reference);
  if (found) return found;
  const paths = view.steps.map(({ path }) => path);
  const guess = nearest(reference, paths);
  const [, step = ''] = /^(.*):\d+$/.exec(reference) ?? [];
  const copies = view.step(step)?.children.filter(({ isWorker }) => isWorker) ?? [];
  const hint =
    copies.length > 0
      ? `the copies of ${step} are ${listed(copies.map(({ path }) => path))}`
      : guess
        ? `did you mean ${guess}?`
        : `the steps of the run are ${listed(paths)}`;
  throw new RepriseError('USAGE', `run ${view.runId} has no step ${reference}`, { hint });
}

const maxNames = 10;

export const listed = (names: readonly string[]): string =>
  names.length <= maxNames
    ? names.join(', ')
    : `${names.slice(0, maxNames).join(', ')} and ${names.length - maxNames} more`;

/** A step, or a copy of one, with its own workspace. */
export interface UnitWork {
  readonly step: StepProgress;
  readonly workspace: WorkspaceProgress;
}

/** Finds the workspace of a step, or that of its selected copy. Throws USAGE. */
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
      `${step.path} has ${inside.length} copies, each with its own work: ${listed(inside.map(({ path }) => path))}`,
      { hint: `name one: reprise ${command} ${view.runId} ${example.path}` },
    );
  }
  const others = view.steps.filter(({ work }) => work.workspace).map(({ path }) => path);
  throw new RepriseError('USAGE', `${step.path} of run ${view.runId} has no workspace of its own`, {
    hint: others.length > 0 ? `steps with a workspace: ${listed(others)}` : 'no step of this run has one',
  });
}
