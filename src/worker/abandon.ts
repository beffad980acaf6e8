import { join } from 'node:path';
import {
  type ErrorData,
  type EventOf,
  type HistoryEvent,
  RepriseError,
  toErrorData,
  toTimestamp,
} from '../core/index.ts';
import type { Environment, RunResult } from '../engine/index.ts';
import { bestEffort } from '../engine/step/index.ts';
import { dispatcher, firstLineOf, type WorkerNews } from './contract.ts';
import type { WorkerEffects } from './effects/effects.ts';

type UnfinishedResult = Exclude<RunResult, { status: 'completed' }>;

interface AbandonContext {
  readonly effects: WorkerEffects;
  readonly incarnation: string;
  readonly interrupt: AbortSignal;
  readonly result: UnfinishedResult;
  readonly unfinished: UnfinishedWork;
  /** Whoever had it before was told to stop, and died of it. */
  readonly wasStopped: boolean;
  readonly report: (news: WorkerNews) => void;
}

/**
 * A task that did not come to its end: the work is kept where it is found again, and the task is free for others.
 * Throws what would be the same for every other task.
 */
export async function abandonTask({
  effects,
  incarnation,
  interrupt,
  result,
  unfinished,
  wasStopped,
  report,
}: AbandonContext): Promise<void> {
  const error = errorOf(result);
  const { task, token, workspace, parked } = unfinished;
  if (task !== undefined && (parked === undefined || token !== undefined)) {
    const isStopped = result.status === 'cancelled' && (await effects.isStopped(interrupt));
    const state = isStopped || wasStopped || notOfTheTask.has(error.code) ? 'released' : 'failed';
    if (workspace?.isUnsaved) await save(effects, workspace);
    const commit = workspace && (await ownCommit(effects, workspace));
    const branch = commit === undefined ? undefined : await effects.park({ task, commit });
    const reason = firstLineOf(error.message);
    const at = toTimestamp(await effects.now());
    if (token !== undefined) await effects.settleClaim({ task, token, state, at, reason, branch });
    report({ kind: 'let-go', task, state, reason, branch, hint: error.hint });
  }
  if (workspace) await remove(effects, { workspace, incarnation, report });
  if (notOfTheTask.has(error.code)) throw new RepriseError(error.code as 'AGENT_LOGIN', error.message, error);
}

/** Commits what was done, if whoever did it had no time to. What fails here is told of when the workspace is removed. */
const save = (effects: WorkerEffects, { path, branch, base }: UnfinishedWorkspace): Promise<void> =>
  bestEffort(
    async () => {
      const at = toTimestamp(await effects.now());
      await effects.saveLeft({ path, branch, base, message: 'work: unfinished work\n', at });
    },
    () => {},
  );

/** What is in it is on a branch by now. */
async function remove(
  effects: WorkerEffects,
  {
    workspace: { path, branch },
    incarnation,
    report,
  }: Pick<AbandonContext, 'incarnation' | 'report'> & { readonly workspace: UnfinishedWorkspace },
): Promise<void> {
  const sayLeft = (what: string, why: string) => report({ kind: 'left', what, why: firstLineOf(why) });
  await bestEffort(
    async () => {
      const removal = await effects.removeWorkspace({ path, branch, incarnation });
      if (removal.kind === 'uncommitted-changes')
        sayLeft(path, `it has uncommitted changes: ${removal.files.join(', ')}`);
      else if (removal.branch?.kind === 'kept' && removal.branch.commits === 0)
        sayLeft(`the branch ${branch}`, 'it could not be removed');
    },
    ({ message }) => sayLeft(path, message),
  );
}

/** The last commit of a workspace, if it has one that its base does not have. */
async function ownCommit(
  effects: WorkerEffects,
  { branch, base }: UnfinishedWorkspace,
): Promise<string | undefined> {
  const tip = await effects.tipOfBranch(branch);
  return tip === null || tip === base ? undefined : tip;
}

/** What would be the same for every other task. */
const notOfTheTask: ReadonlySet<string> = new Set([
  'AGENT_LOGIN',
  'AGENT_NOT_FOUND',
  'GIT_NOT_FOUND',
  'STORE_FAILED',
]);

/** Why a run did not complete. */
export function errorOf(result: UnfinishedResult): ErrorData {
  switch (result.status) {
    case 'failed':
      return result.error;
    case 'cancelled':
      return { code: 'CANCELLED', message: result.reason };
    case 'suspended':
      return toErrorData(new RepriseError('INTERNAL', 'the run of a worker waits for a person'));
  }
}

/** What a run has left behind. */
export interface UnfinishedWork {
  /** That it had, whoever has it now. */
  readonly task?: string | undefined;
  /** Of the claim, while it is held. */
  readonly token?: number | undefined;
  readonly workspace?: UnfinishedWorkspace | undefined;
  /** Where it was parked already. */
  readonly parked?: string | undefined;
  /** Its process was told to stop, as far as that can be told from a person who cancels the run. */
  readonly wasStopped?: true | undefined;
  readonly costUsd: number | null;
  readonly tokens: number;
}

interface UnfinishedWorkspace {
  /** Absolute. */
  readonly path: string;
  readonly branch: string;
  /** The commit that it began with. */
  readonly base: string;
  /** Nobody has committed what was done in it: whoever would have was not at work on it when it ended. */
  readonly isUnsaved?: true | undefined;
}

/** From its history, and from the claims. */
export async function unfinishedWorkOf(
  { store, projectRoot }: Pick<Environment, 'store' | 'projectRoot'>,
  runId: string,
): Promise<UnfinishedWork> {
  const { place, ...unfinished } = unfinishedDetailsOf(await store.read(runId));
  const claim = (await store.claims.list()).find(each => each.runId === runId && each.state === 'held');
  return {
    ...unfinished,
    ...(claim ? { task: claim.task, token: claim.token } : {}),
    ...(place ? { workspace: { ...place, path: join(projectRoot, place.path) } } : {}),
  };
}

const unfinishedWorkspaceOf = ({
  data: { path, branch, base },
}: EventOf<'workspace.created'>): UnfinishedWorkspace => ({
  path,
  branch,
  base,
});

type UnfinishedDetails = Omit<UnfinishedWork, 'token' | 'workspace'> & {
  readonly place?: UnfinishedWorkspace;
};

function unfinishedDetailsOf(history: readonly HistoryEvent[]): UnfinishedDetails {
  let place: UnfinishedWorkspace | undefined;
  let isUnsaved = false;
  let task: string | undefined;
  let parked: string | undefined;
  let wasStopped = false;
  let costUsd: number | null = 0;
  let tokens = 0;
  for (const event of history) {
    if (event.type === 'workspace.created') place = unfinishedWorkspaceOf(event);
    else if (event.type === 'session.started' && event.step === 'work') isUnsaved = true;
    else if (event.type === 'workspace.saved') isUnsaved = false;
    else if (event.type === 'transition.taken' && event.data.from === dispatcher)
      task = event.data.args?.['task'];
    else if (event.type === 'landing.parked') parked = event.data.branch;
    else if (event.type === 'cancel.requested')
      wasStopped = event.data.by === undefined && event.data.error === undefined;
    else if (event.type === 'session.ended') {
      const { usage } = event.data;
      costUsd = usage.costUsd === null || costUsd === null ? null : costUsd + usage.costUsd;
      tokens += usage.inputTokens + usage.outputTokens;
    }
  }
  return {
    ...(place ? { place: { ...place, ...(isUnsaved ? { isUnsaved } : {}) } } : {}),
    ...(task === undefined ? {} : { task }),
    ...(parked === undefined ? {} : { parked }),
    ...(wasStopped ? { wasStopped } : {}),
    costUsd,
    tokens,
  };
}
