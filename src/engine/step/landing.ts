import { type ErrorData, RepriseError } from '../../core/errors.ts';
import type { EventOf } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import {
  type HandOver,
  handingOver,
  type Landing,
  type LandingRefused,
  type LandingSteps,
  landing,
} from '../../git/landing/landing.ts';
import type { Unit } from '../../git/orders.ts';
import type { Lease } from '../../store/port.ts';
import type { LandBody, ShellCommand } from '../../workflow/model.ts';
import { attemptFileName } from '../log-files.ts';
import type { StepEnd } from '../run/messages.ts';
import { siblingUnit, unitOf } from '../state/graph.ts';
import { workVariables } from './commands.ts';
import type { FinishedWork, WorkLane } from './contract.ts';
import type { WorkEffects } from './effects.ts';
import { bestEffort, failedWith } from './outcome.ts';

/** What is to be landed, and how a person names it. */
interface Source {
  readonly branch: string;
  readonly unit: string;
}

/**
 * Lands the work of a step, or that of its workers one after another, up to the first that does not land. What landed
 * before it stays.
 */
export async function landWork(lane: WorkLane, { onto: ontoOf, from, verify }: LandBody): Promise<StepEnd> {
  const { effects, runId, lease, unit, scope } = lane;
  const onto = ontoOf(scope);
  const env = workVariables({ runId, unit, cwd: effects.projectRoot, steps: scope.steps });
  const landings: Landed[] = [];
  for (const source of sourcesOf(lane.workOf(from), siblingUnit(unit.step, from))) {
    const { branch } = source;
    const known = landedBefore(lane, branch);
    if (known) {
      landings.push(known);
      continue;
    }
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
    });
    const ended = isRefused(landing) ? landing : landedNow(lane, landing, branch);
    await bestEffort(
      () => lane.record({ type: 'landing.ended', data: endedData(ended, { onto, branch }) }),
      ({ message }) => effects.notice(`${unit.step}: the end of a landing could not be noted: ${message}`),
    );
    if ('kind' in ended) return failedWith(landingError(ended, { ...source, runId, before: landings }));
    landings.push(ended);
  }
  return { kind: 'completed', output: outputOf(onto, landings) };
}

export interface Landed {
  readonly outcome: 'landed' | 'nothing-to-land';
  readonly branch: string;
  readonly commit: string;
  readonly commits: number;
  /** Where the branch stood before. */
  readonly from?: string | undefined;
  /** Oldest first, and not all of very many. */
  readonly subjects: readonly string[];
}

const mostSubjects = 20;

export const isRefused = (landing: Landing): landing is LandingRefused =>
  landing.kind !== 'landed' && landing.kind !== 'nothing-to-land';

/** What is known of a landing that took place. If it was begun before and nothing is left to land, it was interrupted between landing and noting it. */
export function landedNow(
  { known }: WorkLane,
  landing: Exclude<Landing, LandingRefused>,
  branch: string,
): Landed {
  const { commit } = landing;
  if (landing.kind === 'landed')
    return {
      outcome: 'landed',
      branch,
      commit,
      commits: landing.commits.length,
      from: landing.from,
      subjects: landing.subjects.slice(-mostSubjects),
    };
  const outcome = known.landings.has(branch) ? 'landed' : landing.kind;
  return { outcome, branch, commit, commits: 0, subjects: [] };
}

/** What this attempt had landed before it was interrupted. */
export function landedBefore({ known }: WorkLane, branch: string): Landed | undefined {
  const ended = known.landings.get(branch);
  if (ended?.commit === undefined) return undefined;
  const { outcome, commit, commits = 0, from, subjects = [] } = ended;
  return outcome === 'landed' || outcome === 'nothing-to-land'
    ? { outcome, branch, commit, commits, from, subjects }
    : undefined;
}

function sourcesOf({ branch, workers }: FinishedWork, unit: string): readonly Source[] {
  const sources =
    branch === undefined
      ? (workers ?? []).flatMap(each =>
          each.branch === undefined ? [] : { branch: each.branch, unit: unitOf(unit, each.worker) },
        )
      : [{ branch, unit }];
  if (sources.length > 0) return sources;
  throw new RepriseError('CANNOT_LAND', `there is nothing to land: ${unit} left no branch`, {
    hint: `only what was done in a workspace can be landed: look at \`workspace\` of ${unit}`,
  });
}

function outputOf(onto: string, landings: readonly Landed[]): Json {
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
  landing: Landed | LandingRefused,
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

interface Circumstances extends Source {
  readonly runId: string;
  /** What was landed before it. */
  readonly before: readonly Landed[];
}

const landingError = (
  landing: LandingRefused,
  { branch, unit, runId, before }: Circumstances,
): ErrorData => ({
  code: 'CANNOT_LAND',
  message: [
    `${branch} could not be landed: ${whatHappened(landing)}`,
    ...(before.length > 0 ? [`landed before it: ${before.map(each => each.branch).join(', ')}`] : []),
  ].join('\n'),
  hint: `${landing.hint}\nto land again: reprise land ${runId} ${unit}`,
});

/** In plain words. */
export const whatHappened = (landing: LandingRefused): string =>
  landing.kind === 'verify-failed' && landing.output.trim() !== ''
    ? `${landing.why}\n${landing.output.trim()}`
    : landing.why;

/** A landing, as data. */
export interface LandingRequest {
  readonly runId: string;
  readonly lease: Lease;
  readonly unit: Unit;
  readonly branch: string;
  readonly onto: string;
  /** What has to pass in a checkout of the result. */
  readonly verify?: ShellCommand | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Without which it may not be landed any more. */
  readonly claim?: { readonly task: string; readonly token: number } | undefined;
}

/** Lands a branch, effect by effect. A cancellation reaches it while it waits for its turn, and while it is verified. */
export function landBranch(effects: WorkEffects, request: LandingRequest): Promise<Landing> {
  const { branch, onto } = request;
  return landing(
    {
      ...stepsOf(effects, request),
      prepare: () => effects.prepareLanding({ ...refOf(request), branch, onto }),
      move: ready => effects.moveLanding({ ...orderOf(request), ready }),
    },
    { source: { branch }, onto },
  );
}

/** Makes a branch ready for somebody else to land, in the same way; what is landed on stays where it is. */
export function prepareBranch(effects: WorkEffects, request: LandingRequest): Promise<HandOver> {
  const { branch, onto } = request;
  return handingOver(
    {
      ...stepsOf(effects, request),
      prepare: () => effects.prepareLanding({ ...refOf(request), branch, onto, leavesBranch: true }),
      confirm: ready => effects.confirmLanding({ ...orderOf(request), ready }),
    },
    { source: { branch }, onto },
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
