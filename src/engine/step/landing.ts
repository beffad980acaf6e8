import { type ErrorData, type EventOf, type Json, RepriseError } from '../../core/index.ts';
import type { WorkUnit } from '../../git/index.ts';
import {
  type HandOver,
  handingOver,
  type Landing,
  type LandingRefused,
  type LandingSteps,
  landing,
  type ProtectedFile,
} from '../../git/landing/index.ts';
import type { Lease } from '../../store/index.ts';
import type { LandBody, ShellCommand } from '../../workflow/index.ts';
import { attemptFileName } from '../environment.ts';
import { rejection, type StepEnd } from '../run/messages.ts';
import { siblingUnit, unitOf } from '../state/graph.ts';
import { workVariables } from './commands.ts';
import type { FinishedWork, WorkLane } from './contract.ts';
import type { WorkEffects } from './effects.ts';
import { bestEffort, failedWith } from './outcome.ts';

/** A branch to land, with the unit that users know it by. */
interface LandingSource {
  readonly branch: string;
  readonly unit: string;
}

/**
 * Lands the work of a step, or of its copies in order until one does not land. The ones that landed before stay landed.
 */
export async function landWork(lane: WorkLane, { onto: ontoOf, from, verify }: LandBody): Promise<StepEnd> {
  const { effects, runId, lease, unit, scope } = lane;
  const onto = ontoOf(scope);
  const env = workVariables({ runId, unit, cwd: effects.projectRoot, steps: scope.steps });
  const landings: LandedBranch[] = [];
  for (const source of sourcesOf(lane.workOf(from), siblingUnit(unit.step, from))) {
    const { branch } = source;
    const known = landedBefore(lane, branch);
    if (known) {
      landings.push(known);
      continue;
    }
    const rejected = rejectionOf(lane, branch);
    if (rejected) return failedWith(rejected);
    await lane.record({ type: 'landing.started', data: { onto, branch } });
    const command = verify?.command(scope);
    const landing = await landBranch(effects, {
      runId,
      lease,
      unit,
      branch,
      onto,
      env,
      ...(command ? { verify: command } : {}),
      approved: approvedFiles(lane, branch),
    });
    const ended = isRefused(landing) ? landing : landedNow(lane, landing, branch);
    await bestEffort(
      () => lane.record({ type: 'landing.ended', data: endedData(ended, { onto, branch }) }),
      ({ message }) => effects.notice(`${unit.step}: could not record the end of a landing: ${message}`),
    );
    if ('kind' in ended && ended.kind === 'needs-approval') return askFor(ended, branch);
    if ('kind' in ended) return failedWith(landingError(ended, { ...source, runId, before: landings }));
    landings.push(ended);
  }
  return { kind: 'completed', output: outputOf(onto, landings) };
}

/** Protected files of the branch that a person has approved. */
export function approvedFiles({ known: { approval } }: WorkLane, branch: string): readonly ProtectedFile[] {
  const isApproved = approval?.branch === branch && approval.given?.choice === 'approve';
  return isApproved ? (approval.files ?? []) : [];
}

/** Error of a branch whose landing a person has rejected. */
export const rejectionOf = ({ known: { approval } }: WorkLane, branch: string): ErrorData | undefined =>
  approval?.branch === branch && approval.given?.choice === 'reject' ? rejection(approval.given) : undefined;

type NeedsApproval = Extract<LandingRefused, { kind: 'needs-approval' }>;

/** Ends the lane until a person has approved the changes of protected files. */
export const askFor = ({ why, files, diff }: NeedsApproval, branch: string): StepEnd => ({
  kind: 'needs-approval',
  request: { message: why, choices: ['approve', 'reject'], branch, files: [...files], diff },
});

export interface LandedBranch {
  readonly outcome: 'landed' | 'nothing-to-land';
  readonly branch: string;
  readonly commit: string;
  readonly commits: number;
  /** Commit of the target before the landing. */
  readonly from?: string | undefined;
  /** Subjects of the landed commits, oldest first, limited to the latest 20. */
  readonly subjects: readonly string[];
}

const maxSubjects = 20;

export const isRefused = (landing: Landing): landing is LandingRefused =>
  landing.kind !== 'landed' && landing.kind !== 'nothing-to-land';

/**
 * Describes a landing that succeeded. If this attempt had started to land the branch, and was interrupted after the branch
 * moved and before that was recorded, nothing is left to land; it counts as landed.
 */
export function landedNow(
  { known }: WorkLane,
  landing: Exclude<Landing, LandingRefused>,
  branch: string,
): LandedBranch {
  const moved = landing.kind === 'landed' ? landing : known.landings.has(branch) && landing.landed;
  if (!moved) return { outcome: 'nothing-to-land', branch, commit: landing.commit, commits: 0, subjects: [] };
  const { commit, from, commits } = moved;
  const subjects = commits.map(({ subject }) => subject).slice(-maxSubjects);
  return { outcome: 'landed', branch, commit, commits: commits.length, from, subjects };
}

/** Returns what this attempt landed before it was interrupted. */
export function landedBefore({ known }: WorkLane, branch: string): LandedBranch | undefined {
  const ended = known.landings.get(branch);
  if (ended?.commit === undefined) return undefined;
  const { outcome, commit, commits = 0, from, subjects = [] } = ended;
  return outcome === 'landed' || outcome === 'nothing-to-land'
    ? { outcome, branch, commit, commits, from, subjects }
    : undefined;
}

function sourcesOf({ branch, workers }: FinishedWork, unit: string): readonly LandingSource[] {
  const sources =
    branch === undefined
      ? (workers ?? []).flatMap(each =>
          each.branch === undefined ? [] : { branch: each.branch, unit: unitOf(unit, each.worker) },
        )
      : [{ branch, unit }];
  if (sources.length > 0) return sources;
  throw new RepriseError('CANNOT_LAND', `nothing to land: ${unit} has no branch`, {
    hint: `only work done in a workspace can be landed; check \`workspace\` of ${unit}`,
  });
}

function outputOf(onto: string, landings: readonly LandedBranch[]): Json {
  const landed = landings.flatMap(({ outcome, branch, commit, commits }) =>
    outcome === 'landed' ? { branch, commit, commits } : [],
  );
  const last = landings.at(-1);
  return {
    outcome: landed.length > 0 ? 'landed' : 'nothing-to-land',
    onto,
    commit: last?.commit ?? null,
    branch: last?.branch ?? null,
    landed,
  };
}

export function endedData(
  landing: LandedBranch | LandingRefused,
  where: { readonly onto: string; readonly branch: string },
): EventOf<'landing.ended'>['data'] {
  if ('kind' in landing) return { outcome: landing.kind, ...where, message: whatHappened(landing) };
  const { outcome, commit, commits, from, subjects } = landing;
  return {
    outcome,
    ...where,
    commit,
    ...(outcome === 'landed' ? { commits } : {}),
    ...(from === undefined ? {} : { from, subjects: [...subjects] }),
  };
}

interface LandingContext extends LandingSource {
  readonly runId: string;
  /** Landings that succeeded before this one. */
  readonly before: readonly LandedBranch[];
}

const landingError = (
  landing: LandingRefused,
  { branch, unit, runId, before }: LandingContext,
): ErrorData => ({
  code: 'CANNOT_LAND',
  message: [
    `could not land ${branch}: ${whatHappened(landing)}`,
    ...(before.length > 0 ? [`already landed: ${before.map(each => each.branch).join(', ')}`] : []),
  ].join('\n'),
  hint: `${landing.hint}\nto retry: reprise land ${runId} ${unit}`,
});

/** Describes why a landing was refused, with the output of a failed verification. */
export const whatHappened = (landing: LandingRefused): string =>
  landing.kind === 'verify-failed' && landing.output.trim() !== ''
    ? `${landing.why}\n${landing.output.trim()}`
    : landing.why;

/** The arguments for a landing, as data. */
export interface LandingRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: WorkUnit;
  readonly branch: string;
  readonly onto: string;
  /** Command that must pass in a checkout of the result. */
  readonly verify?: ShellCommand | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Protected files that a person has approved. */
  readonly approved?: readonly ProtectedFile[] | undefined;
  /** Claim that must still be held to land. */
  readonly claim?: { readonly task: string; readonly token: number } | undefined;
}

/** Lands a branch, effect by effect. It can be cancelled while it waits for the lock and during verification. */
export function landBranch(effects: WorkEffects, request: LandingRequest): Promise<Landing> {
  const { branch, onto, approved } = request;
  return landing(
    {
      ...stepsOf(effects, request),
      prepare: () => effects.prepareLanding({ ...refOf(request), branch, onto }),
      move: ready => effects.moveLanding({ ...orderOf(request), ready }),
    },
    { source: { branch }, target: onto, approved },
  );
}

/** Prepares a branch that a person or another tool lands, in the same way, without moving the target. */
export function prepareBranch(effects: WorkEffects, request: LandingRequest): Promise<HandOver> {
  const { branch, onto, approved } = request;
  return handingOver(
    {
      ...stepsOf(effects, request),
      prepare: () => effects.prepareLanding({ ...refOf(request), branch, onto, leavesBranch: true }),
      confirm: ready => effects.confirmLanding({ ...orderOf(request), ready }),
    },
    { source: { branch }, target: onto, approved },
  );
}

const refOf = ({ runId, lease, unit }: LandingRequest) => ({
  key: `${runId}:${attemptFileName(unit)}`,
  lease,
});

const orderOf = (request: LandingRequest) => {
  const { runId, branch, onto, claim } = request;
  return { ...refOf(request), runId, branch, onto, ...(claim && { claim }) };
};

function stepsOf(
  effects: WorkEffects,
  request: LandingRequest,
): Pick<LandingSteps, 'lock' | 'verify' | 'unlock'> {
  const { runId, unit, branch, verify: command, env } = request;
  const ref = refOf(request);
  return {
    lock: () => effects.lockLanding({ ...ref, unit }),
    verify:
      command &&
      (({ commit }) => effects.verifyLanding({ ...ref, runId, unit, branch, commit, command, env })),
    unlock: () => effects.unlockLanding(ref.key),
  };
}
