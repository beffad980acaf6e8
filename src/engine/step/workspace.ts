import { join, posix, relative } from 'node:path';
import { RepriseError, toErrorData } from '../../core/errors.ts';
import { toTimestamp } from '../../core/time.ts';
import { workspaceBranch, workspacePath } from '../../git/names.ts';
import type { WorkFolder } from '../../git/workspace/save.ts';
import type { WorkRules, WorkspaceRule } from '../../workflow/model.ts';
import type { StepEnd } from '../run/messages.ts';
import { unitOf } from '../state/graph.ts';
import { commitMessage, workVariables } from './commands.ts';
import type { WorkLane } from './contract.ts';
import { bestEffort, type Done, endOfThrown, failedWith } from './outcome.ts';

type Worktree = Extract<WorkspaceRule, { kind: 'worktree' }>;

/** Where the work of an attempt is done. */
export interface Place {
  /** Absolute. */
  readonly folder: string;
  /** Absent in the project's own folder. */
  readonly workspace?: (WorkFolder & { readonly readonly: boolean }) | undefined;
  readonly needsSetup: boolean;
  /** For everything that runs there. */
  readonly env: Readonly<Record<string, string>>;
  /** Under which name its ports are known. */
  readonly portsKey?: string | undefined;
}

/** The project's own folder. */
export const projectPlace = ({ effects, runId, unit, scope }: WorkLane): Place => ({
  folder: effects.projectRoot,
  needsSetup: false,
  env: workVariables({ runId, unit, cwd: effects.projectRoot, steps: scope.steps }),
});

/**
 * Makes the workspace ready, or finds it as it was left; a new attempt begins from the base again. History knows of it
 * before it is there, so that a crash in between leaves a trace. Throws NOT_A_REPOSITORY, WORKSPACE_FAILED.
 */
export async function preparePlace(lane: WorkLane, { workspace: rule }: WorkRules): Promise<Place> {
  if (rule.kind === 'none') return projectPlace(lane);
  const { effects, runId, unit, known } = lane;
  const folder = await findFolder(lane, rule);
  const portsKey = `${runId}/${unitOf(unit.step, unit.worker)}`;
  const ports = await effects.takePorts({ key: portsKey, before: known.workspace?.ports });
  try {
    const needsSetup = await makeFolder(lane, folder, ports);
    return {
      folder: folder.path,
      workspace: { ...folder, readonly: rule.readonly },
      needsSetup,
      env: workVariables({ runId, unit, cwd: folder.path, ports, steps: lane.scope.steps }),
      portsKey,
    };
  } catch (thrown) {
    await effects.releasePorts(portsKey);
    throw thrown;
  }
}

const isNewAttempt = ({ known, unit }: WorkLane): boolean =>
  known.workspace === undefined || known.workspace.attempt < unit.attempt;

/** Gives whether it has to be set up. */
async function makeFolder(
  lane: WorkLane,
  folder: WorkFolder,
  ports: { readonly first: number; readonly size: number },
): Promise<boolean> {
  const { effects, runId, lease, unit, known } = lane;
  if (isNewAttempt(lane)) {
    const path = relative(effects.projectRoot, folder.path);
    const { branch, base } = folder;
    await lane.record({ type: 'workspace.created', data: { path, branch, base, ports } });
  }
  const order = { ...folder, runId, lease, unit };
  const { isFound, isSetUp } = await effects.createWorkspace(order);
  if (!isNewAttempt(lane) || (known.workspace === undefined && !isFound)) return !isSetUp;
  await effects.resetWorkspace(order);
  return true;
}

async function findFolder(lane: WorkLane, rule: Worktree): Promise<WorkFolder> {
  const { effects, workflow, runId, unit, scope, known } = lane;
  const name = { workflow, run: runId, step: unit.step, worker: unit.worker };
  const before = known.workspace;
  const own = rule.branch && ownBranch(lane, rule.branch(scope));
  const branch = before?.branch ?? own ?? workspaceBranch(name);
  return {
    path: before ? join(effects.projectRoot, before.path) : workspacePath(effects.worktrees.folder, name),
    branch,
    base: await beginningOf(lane, { rule, own }),
  };
}

/**
 * A branch that somebody made before is taken as it stands, and is not to be brought back behind that. The base of
 * others is asked for again in each attempt: what it comes after may have been done again.
 */
async function beginningOf(
  lane: WorkLane,
  { rule, own }: { readonly rule: Worktree; readonly own: string | undefined },
): Promise<string> {
  const { effects, known } = lane;
  if (known.workspace && (own !== undefined || !isNewAttempt(lane))) return known.workspace.base;
  const base = await baseOf(lane, rule);
  return (own !== undefined && (await effects.tipOfBranch(own))) || base;
}

/** Copies of a step cannot share a branch; workers of a matrix are told apart by whoever writes the name. */
const ownBranch = ({ model, unit }: WorkLane, name: string): string =>
  model.fanOut?.kind === 'concurrency' && unit.worker !== undefined ? `${name}-${unit.worker}` : name;

async function baseOf({ effects, base, workOf, scope }: WorkLane, rule: Worktree): Promise<string> {
  try {
    switch (rule.base.kind) {
      case 'run':
        return base?.commit ?? (await effects.resolveBase('HEAD'));
      case 'ref':
        return await effects.resolveBase(rule.base.name(scope));
      case 'step': {
        const { id } = rule.base;
        const { commit } = workOf(id);
        if (commit !== undefined) return commit;
        throw new RepriseError('WORKSPACE_FAILED', `the step ${id} has left no commit to begin from`, {
          hint: `only a step that worked in a workspace of its own leaves one: look at \`workspace\` of ${id}`,
        });
      }
    }
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'NOT_A_REPOSITORY') throw thrown;
    throw new RepriseError('NOT_A_REPOSITORY', `no workspace can be made: ${thrown.message}`, {
      hint: 'make a repository (git init && git commit --allow-empty -m "Begin"), or let the step work in the project itself: `workspace: none`',
    });
  }
}

/** How long clean-up may take: nobody waits for it for ever. */
const teardownMs = 60_000;

interface Ended {
  readonly rules: WorkRules;
  readonly place: Place;
  readonly done: Done;
}

/** Keeps the work and tears down what surrounded it. What is paused goes on in the same folder, as it was left. */
export async function cleanUp(lane: WorkLane, { rules, place, done }: Ended): Promise<StepEnd> {
  if (done.end.kind === 'paused') return done.end;
  const end = place.workspace ? await keep(lane, { rules, place, done }) : done.end;
  await tearDown(lane, rules, place);
  return end;
}

/** Nothing that was done is lost, however it ended; but only what is kept has succeeded. */
async function keep(lane: WorkLane, { rules, place, done }: Ended): Promise<StepEnd> {
  const { workspace } = place;
  if (!workspace) return done.end;
  try {
    return workspace.readonly
      ? await keepUnchanged(lane, { rules, workspace, end: done.end })
      : await keepWork(lane, { workspace, done });
  } catch (thrown) {
    const end = endOfThrown(thrown);
    if (!end) throw thrown;
    if (done.end.kind === 'completed') return end;
    noticeOf(lane, 'the unfinished work could not be kept', toErrorData(thrown).message);
    return done.end;
  }
}

async function keepWork(
  lane: WorkLane,
  { workspace, done }: { readonly workspace: NonNullable<Place['workspace']>; readonly done: Done },
): Promise<StepEnd> {
  const { path, branch, base } = workspace;
  const summary = done.end.kind === 'completed' ? done.summary : 'unfinished work';
  const at = toTimestamp(await lane.effects.now());
  const message =
    (done.end.kind === 'completed' ? done.message : undefined) ?? commitMessage(lane.unit, summary);
  const saved = await lane.effects.saveWork({ path, branch, base, message, at });
  lane.conclude({ type: 'workspace.saved', data: saved });
  return done.end;
}

async function keepUnchanged(
  lane: WorkLane,
  {
    rules,
    workspace,
    end,
  }: {
    readonly rules: WorkRules;
    readonly workspace: NonNullable<Place['workspace']>;
    readonly end: StepEnd;
  },
): Promise<StepEnd> {
  const { effects, runId, lease, unit } = lane;
  const { path, branch, base } = workspace;
  const folder = { path, branch, base };
  const takeBack = () =>
    bestEffort(
      () => effects.resetWorkspace({ ...folder, runId, lease, unit }),
      ({ message }) => noticeOf(lane, 'the workspace could not be put back', message),
    );
  if (end.kind !== 'completed') {
    await takeBack();
    return end;
  }
  const changed = await effects.changesIn({
    ...folder,
    ignoring: rules.artifacts.map(artifact => posix.normalize(artifact.path)),
  });
  if (changed.length === 0) return end;
  await takeBack();
  const shown = changed.slice(0, shownFiles).join(', ');
  const more = changed.length > shownFiles ? ` and ${changed.length - shownFiles} more` : '';
  return failedWith({
    code: 'READONLY_CHANGED',
    message: `nothing may change in the workspace of this step, but this did: ${shown}${more}`,
    hint: 'the changes were put aside; let the step work in a workspace of its own, or let it leave files alone',
  });
}

const shownFiles = 5;

async function tearDown(lane: WorkLane, { teardown }: WorkRules, place: Place): Promise<void> {
  const { effects, runId, lease, unit, scope } = lane;
  if (teardown.length === 0) return;
  // What is torn down has to be set up again, should anybody work there once more.
  if (place.workspace) await effects.markSetUp({ path: place.folder, done: false });
  for (const [index, { text, command }] of teardown.entries()) {
    await bestEffort(
      async () => {
        const { end } = await effects.cleanupShell({
          runId,
          lease,
          unit,
          what: `teardown-${index + 1}`,
          command: command(scope),
          folder: place.folder,
          env: place.env,
          limitMs: teardownMs,
        });
        if (end.kind === 'failed') noticeOf(lane, `the teardown \`${text}\` failed`, end.error.message);
        if (end.kind === 'cancelled')
          noticeOf(lane, `the teardown \`${text}\``, `took longer than ${teardownMs / 1000} s and was ended`);
      },
      ({ message }) => noticeOf(lane, `the teardown \`${text}\` failed`, message),
    );
  }
}

const noticeOf = ({ effects, unit }: WorkLane, what: string, message: string): void =>
  effects.notice(`${unitOf(unit.step, unit.worker)}: ${what}: ${message}`);
