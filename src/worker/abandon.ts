import { join } from 'node:path';
import { type ErrorData, type EventOf, type HistoryEvent, RepriseError, toTimestamp } from '../core/index.ts';
import type { Environment, RunResult } from '../engine/index.ts';
import { bestEffort } from '../engine/step/index.ts';
import type { SpendingLimit } from '../workflow/index.ts';
import { dispatcher, firstLineOf, type WorkerNews } from './contract.ts';
import type { WorkerEffects } from './effects/effects.ts';

type UnfinishedResult = Exclude<RunResult, { status: 'completed' | 'waiting' }>;

interface AbandonContext {
  readonly effects: WorkerEffects;
  readonly incarnation: string;
  readonly interrupt: AbortSignal;
  readonly result: UnfinishedResult;
  readonly unfinished: UnfinishedWork;
  /** The previous worker exited because it was asked to stop, so the task did not fail. */
  readonly wasStopped: boolean;
  readonly report: (news: WorkerNews) => void;
}

/**
 * Abandons a task whose run did not complete: keeps its work on a branch and releases the claim.
 * Throws the error of the run if it would fail every other task too.
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
    const isStopped = result.status === 'cancelled' && (await effects.mustStop({ interrupt })) === true;
    const isBlameless = affectsEveryTask.has(error.code) || error.code === 'AGENT_UNAVAILABLE';
    const state = isStopped || wasStopped || isBlameless ? 'released' : 'failed';
    if (workspace?.isUnsaved) await save(effects, workspace);
    const commit = workspace && (await ownCommit(effects, workspace));
    const branch = commit === undefined ? undefined : await effects.park({ task, commit });
    const reason = firstLineOf(error.message);
    const at = toTimestamp(await effects.now());
    if (token !== undefined) await effects.settleClaim({ task, token, state, at, reason, branch });
    report({ kind: 'abandoned', task, state, reason, branch, hint: error.hint });
  }
  if (workspace) await remove(effects, { workspace, incarnation, report });
  if (affectsEveryTask.has(error.code))
    throw new RepriseError(error.code as 'AGENT_LOGIN', error.message, error);
}

/** Commits uncommitted work. A failure is reported when the workspace is removed, because its changes are still there. */
const save = (effects: WorkerEffects, { path, branch, base }: UnfinishedWorkspace): Promise<void> =>
  bestEffort(
    async () => {
      const at = toTimestamp(await effects.now());
      await effects.saveUnfinished({ path, branch, base, message: 'work: unfinished work\n', at });
    },
    () => {},
  );

/** Removes the workspace, whose work is on a branch by now. */
async function remove(
  effects: WorkerEffects,
  {
    workspace: { path, branch },
    incarnation,
    report,
  }: Pick<AbandonContext, 'incarnation' | 'report'> & { readonly workspace: UnfinishedWorkspace },
): Promise<void> {
  const reportLeft = (what: string, why: string) => report({ kind: 'leftover', what, why: firstLineOf(why) });
  await bestEffort(
    async () => {
      const removal = await effects.removeWorkspace({ path, branch, incarnation });
      if (removal.kind === 'uncommitted-changes')
        reportLeft(path, `it has uncommitted changes: ${removal.files.join(', ')}`);
      else if (removal.branch?.kind === 'kept' && removal.branch.commits === 0)
        reportLeft(`the branch ${branch}`, 'it could not be removed');
    },
    ({ message }) => reportLeft(path, message),
  );
}

/** Tip of the workspace's branch, or `undefined` if it has no commit of its own. */
async function ownCommit(
  effects: WorkerEffects,
  { branch, base }: UnfinishedWorkspace,
): Promise<string | undefined> {
  const tip = await effects.tipOfBranch(branch);
  return tip === null || tip === base ? undefined : tip;
}

/** Codes of errors that would fail every other task too. */
const affectsEveryTask: ReadonlySet<string> = new Set([
  'AGENT_LOGIN',
  'AGENT_NOT_FOUND',
  'GIT_NOT_FOUND',
  'STORE_FAILED',
]);

/** Error of a run that did not complete. */
export function errorOf(result: UnfinishedResult): ErrorData {
  switch (result.status) {
    case 'failed':
      return result.error;
    case 'cancelled':
      return { code: 'CANCELLED', message: result.reason };
    case 'suspended':
      return result.error ?? { code: 'CANCELLED', message: result.reason };
  }
}

/** Task, claim and workspace of a run that has ended. */
export interface UnfinishedWork {
  /** Task of the run, even if another run holds it now. */
  readonly task?: string | undefined;
  /** Token of the claim, while the run holds it. */
  readonly token?: number | undefined;
  readonly workspace?: UnfinishedWorkspace | undefined;
  /** Branch on which the work was already parked. */
  readonly parked?: string | undefined;
  /** The process was asked to stop. Unset if a person cancelled the run instead. */
  readonly wasStopped?: true | undefined;
  /** Limits that were in force when a budget stopped the run. */
  readonly limit?: SpendingLimit | undefined;
  /** Sum of the known costs. */
  readonly costUsd: number;
  /** Whether the cost of some session is unknown. */
  readonly costUnknown?: true | undefined;
  readonly tokens: number;
}

interface UnfinishedWorkspace {
  /** Absolute path. */
  readonly path: string;
  readonly branch: string;
  /** Commit from which the workspace was created. */
  readonly base: string;
  /** An agent has worked in it since the last commit by Reprise. */
  readonly isUnsaved?: true | undefined;
}

/** Reads the unfinished work of a run from its history and from the claims. */
export async function unfinishedWorkOf(
  {
    store,
    projectRoot,
    historyRoot = projectRoot,
  }: Pick<Environment, 'store' | 'projectRoot' | 'historyRoot'>,
  runId: string,
): Promise<UnfinishedWork> {
  const { place, ...unfinished } = unfinishedDetailsOf(await store.read(runId));
  const claim = (await store.claims.list()).find(each => each.runId === runId && each.state === 'held');
  return {
    ...unfinished,
    ...(claim ? { task: claim.task, token: claim.token } : {}),
    ...(place ? { workspace: { ...place, path: join(historyRoot, place.path) } } : {}),
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
  let limit: SpendingLimit | undefined;
  let costUsd = 0;
  let costUnknown = false;
  let tokens = 0;
  for (const event of history) {
    if (event.type === 'workspace.created') place = unfinishedWorkspaceOf(event);
    else if (event.type === 'session.started' && event.step === 'work') isUnsaved = true;
    else if (event.type === 'workspace.saved') isUnsaved = false;
    else if (event.type === 'transition.taken' && event.data.from === dispatcher)
      task = event.data.args?.['task'];
    else if (event.type === 'landing.parked') parked = event.data.branch;
    else if (event.type === 'run.suspended') limit = event.data.limit;
    else if (event.type === 'cancel.requested')
      wasStopped = event.data.by === undefined && event.data.error === undefined;
    else if (event.type === 'session.ended') {
      const { usage } = event.data;
      costUsd += usage.costUsd ?? 0;
      costUnknown ||= usage.costUsd === null;
      tokens += usage.inputTokens + usage.outputTokens;
    }
  }
  return {
    ...(place ? { place: { ...place, ...(isUnsaved ? { isUnsaved } : {}) } } : {}),
    ...(task === undefined ? {} : { task }),
    ...(parked === undefined ? {} : { parked }),
    ...(wasStopped ? { wasStopped } : {}),
    ...(limit ? { limit } : {}),
    costUsd,
    ...(costUnknown ? { costUnknown } : {}),
    tokens,
  };
}
