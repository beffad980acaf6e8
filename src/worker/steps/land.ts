import { join } from 'node:path';
import { type ErrorData, type EventOf, toTimestamp } from '../../core/index.ts';
import {
  approvedFiles,
  askFor,
  type BuiltInWork,
  bestEffort,
  endedData,
  failedWith,
  isRefused,
  type LandedBranch,
  type LandingRequest,
  landBranch,
  landedBefore,
  landedNow,
  prepareBranch,
  rejectionOf,
  type WorkLane,
  type WorkOutcome,
  whatHappened,
  workVariables,
} from '../../engine/step/index.ts';
import type { LandingRefused } from '../../git/landing/index.ts';
import type { Settlement } from '../../store/index.ts';
import { dispatchedOf, type WorkerHandle } from '../contract.ts';
import { type FinishedTask, LandingRepair } from './repair.ts';

/** Lands or delivers finished work. The agent that did the work repairs conflicts and failed verifications. */
export const landStep =
  (worker: WorkerHandle): BuiltInWork =>
  async lane => {
    const dispatched = dispatchedOf(lane.scope);
    const { task } = dispatched;
    const own = { ...lane, unit: { ...lane.unit, task: task.id } };
    const work = finishedWork(own);
    await worker.show({ state: 'landing', runId: lane.runId, task: task.id });
    return landOrDeliver(worker, own, { ...dispatched, work });
  };

function finishedWork({ effects, runId, unit, workOf, scope }: WorkLane): FinishedTask['work'] {
  const { branch, base, commit, workspace, session } = workOf('work');
  if (branch === undefined || workspace === undefined || base === undefined || commit === undefined)
    throw new TypeError('the work of a task has no workspace');
  const path = join(effects.historyRoot, workspace);
  const env = workVariables({ runId, unit, cwd: path, steps: scope.steps });
  return { path, branch, base, commit, session, env };
}

/** Delivered work is rebased and verified exactly as landed work is. */
async function landOrDeliver(
  worker: WorkerHandle,
  lane: WorkLane,
  finished: FinishedTask,
): Promise<WorkOutcome> {
  const { effects, known } = lane;
  const { branch } = finished.work;
  const onto = worker.rules.branch;
  const repair = new LandingRepair(worker, lane, finished);
  const before = landedBefore(lane, branch);
  if (before) return landed(worker, lane, { finished, landing: before });
  if (known.delivered) return delivered(worker, lane, { finished, delivery: known.delivered });
  const isToLand = worker.rules.land === 'main';
  const request = landingOf(worker, lane, finished);
  const rejected = rejectionOf(lane, branch);
  if (rejected) return park(worker, lane, { finished, why: rejected.message });
  let blockedBy = '';
  for (let reworks = known.reworks; ; reworks++) {
    if (isToLand) await lane.record({ type: 'landing.started', data: { onto, branch } });
    const landing = await (isToLand ? landBranch : prepareBranch)(effects, request);
    if (landing.kind === 'ready-to-land')
      return deliver(worker, lane, { ...finished, work: { ...finished.work, commit: landing.commit } });
    const ended = isRefused(landing) ? landing : landedNow(lane, landing, branch);
    await bestEffort(
      () => lane.record({ type: 'landing.ended', data: endedData(ended, { onto, branch }) }),
      ({ message }) => effects.notice(`the end of a landing could not be recorded: ${message}`),
    );
    if (!('kind' in ended)) return landed(worker, lane, { finished, landing: ended });
    if (ended.kind === 'fenced') return { end: failedWith(takenOver(ended)), summary: '' };
    if (ended.kind === 'needs-approval') return { end: askFor(ended, branch), summary: '' };
    if (ended.kind === 'main-checkout-in-the-way' && worker.canWait) {
      await untilClear(worker, lane, { task: finished.task.id, ended, isNews: ended.why !== blockedBy });
      blockedBy = ended.why;
      reworks--;
      continue;
    }
    if (reworks >= worker.rules.resolve || !repair.canRepair(ended))
      return park(worker, lane, { finished, why: whatHappened(ended) });
    const repaired = await repair.repair(ended);
    if (repaired.kind === 'ended') return { end: repaired.end, summary: '' };
    if (repaired.kind === 'not-repaired')
      return park(worker, lane, { finished, why: repaired.why, commit: repaired.commit });
  }
}

const tryAgainMs = 30_000;

type BlockedCheckout = Extract<LandingRefused, { kind: 'main-checkout-in-the-way' }>;

/** Waits while uncommitted changes in the main checkout block the landing. Only their author may remove them. */
async function untilClear(
  worker: WorkerHandle,
  { effects, runId }: WorkLane,
  {
    task,
    ended,
    isNews,
  }: { readonly task: string; readonly ended: BlockedCheckout; readonly isNews: boolean },
): Promise<void> {
  const { path, files, why, hint } = ended;
  await worker.show({ state: 'landing', runId, task, note: why });
  if (isNews) effects.notice(`waiting to land ${task}, which is done; ${hint}`);
  if (files.length > 0) return worker.effects.checkoutCleared({ path, files });
  // An unfinished operation such as a merge changes no file that could be watched, so the landing is retried.
  await worker.effects.sleepUntil((await worker.effects.now()) + tryAgainMs);
}

function landingOf(
  worker: WorkerHandle,
  lane: WorkLane,
  { task, token, work }: FinishedTask,
): LandingRequest {
  const { runId, lease, unit } = lane;
  const { verify } = worker.rules;
  return {
    runId,
    lease,
    unit,
    branch: work.branch,
    onto: worker.rules.branch,
    env: work.env,
    claim: { task: task.id, token },
    approved: approvedFiles(lane, work.branch),
    ...(verify === undefined ? {} : { verify: { script: verify, shell: 'bash' as const, env: {} } }),
  };
}

async function landed(
  worker: WorkerHandle,
  lane: WorkLane,
  { finished, landing }: { readonly finished: FinishedTask; readonly landing: LandedBranch },
): Promise<WorkOutcome> {
  const { commit, commits, outcome } = landing;
  await settle(worker, lane, { ...finished, state: 'landed', commit });
  await tidyUp(worker, lane, finished);
  return {
    end: { kind: 'completed', output: { outcome, onto: worker.rules.branch, commit, commits } },
    summary: '',
  };
}

async function settle(
  { effects }: WorkerHandle,
  { runId, lease }: WorkLane,
  {
    task,
    token,
    state,
    reason,
    commit,
    branch,
  }: Omit<Settlement, 'task' | 'at' | 'fence'> & Pick<FinishedTask, 'task'>,
): Promise<void> {
  const at = toTimestamp(await effects.now());
  const fence = { runId, lease };
  await effects.settleClaim({ task: task.id, token, state, at, reason, commit, branch, fence });
}

/** Removes the workspace of landed or delivered work. */
async function tidyUp({ effects }: WorkerHandle, lane: WorkLane, { work }: FinishedTask): Promise<void> {
  const { path, branch } = work;
  const { runId, lease } = lane;
  const { incarnation } = lease;
  const say = (why: string) => lane.effects.notice(`the workspace ${path} is kept: ${why}`);
  await bestEffort(
    async () => {
      const removal = await effects.removeWorkspace({ incarnation, path, branch, fence: { runId, lease } });
      if (removal.kind === 'uncommitted-changes')
        say(`it has uncommitted changes: ${removal.files.join(', ')}`);
    },
    ({ message }) => say(message),
  );
}

/** Parks work that cannot land: keeps it on its own branch and settles the claim. */
async function park(
  worker: WorkerHandle,
  lane: WorkLane,
  {
    finished,
    why: reason,
    commit: kept,
  }: {
    readonly finished: FinishedTask;
    readonly why: string;
    readonly commit?: string | undefined;
  },
): Promise<WorkOutcome> {
  const { task, work } = finished;
  const commit = kept ?? (await lane.effects.tipOfBranch(work.branch)) ?? work.commit;
  const branch = await worker.effects.park({ task: task.id, commit });
  await lane.record({ type: 'landing.parked', data: { branch, commit, message: reason } });
  await settle(worker, lane, { ...finished, state: 'parked', reason, branch });
  return {
    end: failedWith({
      code: 'CANNOT_LAND',
      message: `${task.id} could not be landed on ${worker.rules.branch}: ${reason}`,
      hint: `the work is parked on ${branch}; inspect it: git log ${worker.rules.branch}..${branch}; retry the task: reprise tasks release ${task.id}`,
    }),
    summary: '',
  };
}

/** Leaves the work on a branch to be landed outside of Reprise. */
async function deliver(worker: WorkerHandle, lane: WorkLane, finished: FinishedTask): Promise<WorkOutcome> {
  const { rules, effects } = worker;
  const { task, work } = finished;
  const { commit } = work;
  const branch = await effects.deliver({ task: task.id, commit });
  if (rules.land === 'pr') {
    await effects.push({ branch, commit });
    const failed = await announce(worker, lane, { finished, branch });
    if (failed) return { end: failedWith(failed), summary: '' };
  }
  const delivery = { branch, commit, ...(rules.land === 'pr' ? { remote: rules.remote } : {}) };
  await lane.record({ type: 'landing.delivered', data: delivery });
  return delivered(worker, lane, { finished, delivery });
}

async function delivered(
  worker: WorkerHandle,
  lane: WorkLane,
  {
    finished,
    delivery: { branch, commit },
  }: { readonly finished: FinishedTask; readonly delivery: Delivery },
): Promise<WorkOutcome> {
  await settle(worker, lane, { ...finished, state: 'delivered', commit, branch });
  await tidyUp(worker, lane, finished);
  return { end: { kind: 'completed', output: { outcome: 'delivered', branch, commit } }, summary: '' };
}

async function announce(
  { rules }: WorkerHandle,
  { effects, runId, lease, unit }: WorkLane,
  { finished: { task }, branch }: { readonly finished: FinishedTask; readonly branch: string },
): Promise<ErrorData | undefined> {
  const env = {
    REPRISE_BRANCH: branch,
    REPRISE_BASE: rules.branch,
    REPRISE_TASK: task.id,
    REPRISE_TITLE: task.title,
  };
  const command = { script: rules.prCommand ?? '', shell: 'bash' as const, env };
  const { end } = await effects.shell({ runId, lease, unit, what: 'pr', command, env: {} });
  return end.kind === 'failed'
    ? {
        ...end.error,
        hint: `${branch} has been pushed to ${rules.remote}; run \`workers.pr_command\` by hand`,
      }
    : undefined;
}

type Delivery = EventOf<'landing.delivered'>['data'];

const takenOver = ({ why }: LandingRefused): ErrorData => ({
  code: 'CANNOT_LAND',
  message: why,
  hint: 'see who has the task now: reprise status',
});
