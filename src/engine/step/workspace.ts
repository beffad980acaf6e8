import { join, posix, relative } from 'node:path';
import { RepriseError, toErrorData, toTimestamp } from '../../core/index.ts';
import { workspaceBranch, workspacePath } from '../../git/index.ts';
import type { WorkFolder } from '../../git/workspace/index.ts';
import type { WorkRules, WorkspaceRule } from '../../workflow/index.ts';
import type { StepEnd } from '../run/messages.ts';
import { unitOf } from '../state/graph.ts';
import { commitMessage, workVariables } from './commands.ts';
import type { WorkLane } from './contract.ts';
import { bestEffort, endOfThrown, failedWith, type WorkOutcome } from './outcome.ts';

type WorktreeRule = Extract<WorkspaceRule, { kind: 'worktree' }>;

/** Location in which an attempt works. */
export interface WorkLocation {
  /** Absolute path of the folder. */
  readonly folder: string;
  /** Workspace; absent if the step works in the project folder. */
  readonly workspace?: WorkFolder | undefined;
  /** Whether the step must leave the folder unchanged. */
  readonly isReadonly: boolean;
  readonly needsSetup: boolean;
  /** Whether the folder in which this attempt had worked was missing. It has been created again, without that work. */
  readonly isLost?: boolean | undefined;
  /** Environment variables for every command and agent in the location. */
  readonly env: Readonly<Record<string, string>>;
  /** Key under which its ports are reserved. */
  readonly portsKey?: string | undefined;
}

/** Returns the project folder as the location. */
export const projectLocation = ({ effects, runId, unit, scope }: WorkLane): WorkLocation => ({
  folder: effects.projectRoot,
  isReadonly: false,
  needsSetup: false,
  env: workVariables({ runId, unit, cwd: effects.projectRoot, steps: scope.steps }),
});

/**
 * Creates the workspace or reuses an existing one; a new attempt starts from the base again. The workspace is recorded
 * before it is created, so that a crash in between leaves a trace. Throws NOT_A_REPOSITORY or WORKSPACE_FAILED.
 */
export async function prepareLocation(lane: WorkLane, { workspace: rule }: WorkRules): Promise<WorkLocation> {
  if (rule.kind === 'none') return projectLocation(lane);
  const { effects, runId, unit, known } = lane;
  const folder = await findFolder(lane, rule);
  const portsKey = `${runId}/${unitOf(unit.step, unit.worker)}`;
  const ports = await effects.takePorts({ key: portsKey, before: known.workspace?.ports });
  try {
    const { needsSetup, isLost } = await makeFolder(lane, folder, ports);
    return {
      folder: folder.path,
      workspace: folder,
      isReadonly: rule.readonly,
      needsSetup,
      isLost,
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

/** Creates the folder. */
async function makeFolder(
  lane: WorkLane,
  folder: WorkFolder,
  ports: { readonly first: number; readonly size: number },
): Promise<{ readonly needsSetup: boolean; readonly isLost: boolean }> {
  const { effects, runId, lease, unit, known } = lane;
  if (isNewAttempt(lane)) {
    const path = relative(effects.historyRoot, folder.path);
    const { branch, base } = folder;
    await lane.record({ type: 'workspace.created', data: { path, branch, base, ports } });
  }
  const order = { ...folder, runId, lease, unit };
  const { isFound, isSetUp } = await effects.createWorkspace(order);
  if (!isNewAttempt(lane)) return { needsSetup: !isSetUp, isLost: !isFound };
  if (known.workspace === undefined && !isFound) return { needsSetup: !isSetUp, isLost: false };
  await effects.resetWorkspace(order);
  return { needsSetup: true, isLost: false };
}

async function findFolder(lane: WorkLane, rule: WorktreeRule): Promise<WorkFolder> {
  const { effects, workflow, runId, unit, scope, known } = lane;
  const name = { workflow, run: runId, step: unit.step, worker: unit.worker };
  const before = known.workspace;
  const own = rule.branch && ownBranch(lane, rule.branch(scope));
  const branch = before?.branch ?? own ?? workspaceBranch(name);
  return {
    path: before ? join(effects.historyRoot, before.path) : workspacePath(effects.worktrees.folder, name),
    branch,
    base: await startOf(lane, { rule, own }),
  };
}

/**
 * Returns the commit to start from. An existing branch is used as is and never reset to an earlier commit. The base of
 * other branches is resolved again for every attempt, because a step it depends on may have been rerun.
 */
async function startOf(
  lane: WorkLane,
  { rule, own }: { readonly rule: WorktreeRule; readonly own: string | undefined },
): Promise<string> {
  const { effects, known } = lane;
  if (known.workspace && (own !== undefined || !isNewAttempt(lane))) return known.workspace.base;
  const base = await baseOf(lane, rule);
  return (own !== undefined && (await effects.tipOfBranch(own))) || base;
}

/** Adds the index for copies, which cannot share a branch. In a matrix, the definition makes the name unique. */
const ownBranch = ({ model, unit }: WorkLane, name: string): string =>
  model.fanOut?.kind === 'concurrency' && unit.worker !== undefined ? `${name}-${unit.worker}` : name;

async function baseOf({ effects, base, workOf, scope }: WorkLane, rule: WorktreeRule): Promise<string> {
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
        throw new RepriseError('WORKSPACE_FAILED', `step ${id} has no commit to start from`, {
          hint: `only a step with its own workspace has one; check \`workspace\` of ${id}`,
        });
      }
    }
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'NOT_A_REPOSITORY') throw thrown;
    throw new RepriseError('NOT_A_REPOSITORY', `cannot create a workspace: ${thrown.message}`, {
      hint: 'create a repository (git init && git commit --allow-empty -m "Begin"), or run the step in the project folder with `workspace: none`',
    });
  }
}

/** Timeout of each teardown command. */
const teardownMs = 60_000;

interface EndedWork {
  readonly rules: WorkRules;
  readonly location: WorkLocation;
  readonly done: WorkOutcome;
}

/** Saves the work and runs the teardown. A paused or suspended step keeps its workspace and continues in it. */
export async function cleanUp(lane: WorkLane, { rules, location, done }: EndedWork): Promise<StepEnd> {
  if (done.end.kind === 'paused' || done.end.kind === 'suspended') return done.end;
  const end = location.workspace ? await keep(lane, { rules, location, done }) : done.end;
  await tearDown(lane, rules, location);
  return end;
}

/** Saves the work however it ended. A step succeeds only if its work is saved. */
async function keep(lane: WorkLane, { rules, location, done }: EndedWork): Promise<StepEnd> {
  const { workspace } = location;
  if (!workspace) return done.end;
  try {
    return location.isReadonly
      ? await keepUnchanged(lane, { rules, workspace, end: done.end })
      : await keepWork(lane, { workspace, done });
  } catch (thrown) {
    const end = endOfThrown(thrown);
    if (!end) throw thrown;
    if (done.end.kind === 'completed') return end;
    noticeOf(lane, 'could not save the unfinished work', toErrorData(thrown).message);
    return done.end;
  }
}

async function keepWork(
  lane: WorkLane,
  {
    workspace,
    done,
  }: { readonly workspace: NonNullable<WorkLocation['workspace']>; readonly done: WorkOutcome },
): Promise<StepEnd> {
  const { path, branch, base } = workspace;
  const summary = done.end.kind === 'completed' ? done.summary : 'unfinished work';
  const at = toTimestamp(await lane.effects.now());
  const message =
    (done.end.kind === 'completed' ? done.message : undefined) ?? commitMessage(lane.unit, summary);
  const { runId, lease } = lane;
  const saved = await lane.effects.saveWork({ path, branch, base, message, at, fence: { runId, lease } });
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
    readonly workspace: NonNullable<WorkLocation['workspace']>;
    readonly end: StepEnd;
  },
): Promise<StepEnd> {
  const { effects, runId, lease, unit } = lane;
  const { path, branch, base } = workspace;
  const folder = { path, branch, base };
  const reset = () =>
    bestEffort(
      () => effects.resetWorkspace({ ...folder, runId, lease, unit }),
      ({ message }) => noticeOf(lane, 'could not reset the workspace', message),
    );
  if (end.kind !== 'completed') {
    await reset();
    return end;
  }
  const changed = await effects.changesIn({
    ...folder,
    ignoring: rules.artifacts.map(artifact => posix.normalize(artifact.path)),
  });
  if (changed.length === 0) return end;
  await reset();
  const shown = changed.slice(0, maxShownFiles).join(', ');
  const more = changed.length > maxShownFiles ? ` and ${changed.length - maxShownFiles} more` : '';
  return failedWith({
    code: 'READONLY_CHANGED',
    message: `the workspace of this step is read-only, but these files changed: ${shown}${more}`,
    hint: 'the changes were set aside; give the step its own workspace, or make it leave files unchanged',
  });
}

const maxShownFiles = 5;

async function tearDown(lane: WorkLane, { teardown }: WorkRules, location: WorkLocation): Promise<void> {
  const { effects, runId, lease, unit, scope } = lane;
  if (teardown.length === 0) return;
  // After a teardown the workspace must be set up again before the next use.
  if (location.workspace)
    await effects.markSetUp({ path: location.folder, done: false, fence: { runId, lease } });
  for (const [index, { text, command }] of teardown.entries()) {
    await bestEffort(
      async () => {
        const { end } = await effects.cleanupShell({
          runId,
          lease,
          unit,
          what: `teardown-${index + 1}`,
          command: command(scope),
          folder: location.folder,
          env: location.env,
          limitMs: teardownMs,
        });
        if (end.kind === 'failed') noticeOf(lane, `the teardown \`${text}\` failed`, end.error.message);
        if (end.kind === 'cancelled')
          noticeOf(lane, `the teardown \`${text}\` failed`, `it was stopped after ${teardownMs / 1000} s`);
      },
      ({ message }) => noticeOf(lane, `the teardown \`${text}\` failed`, message),
    );
  }
}

const noticeOf = ({ effects, unit }: WorkLane, what: string, message: string): void =>
  effects.notice(`${unitOf(unit.step, unit.worker)}: ${what}: ${message}`);
