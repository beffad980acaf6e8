import { join, relative } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { workspaceBranch, workspacePath } from '../../git/names.ts';
import type { WorkFolder } from '../../git/workspace/save.ts';
import type { WorkRules, WorkspaceRule } from '../../workflow/model.ts';
import { unitOf } from '../unit.ts';
import { workVariables } from '../work/words.ts';
import type { WorkLane } from './contract.ts';

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
