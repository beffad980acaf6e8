import { RepriseError } from '../core/errors.ts';
import { openRepository, resolveCommit } from '../git/repository.ts';
import type { StepModel, WorkflowModel } from '../workflow/model.ts';

/** Whether a step of the workflow, or of a child, works with the repository. */
export function needsRepository(workflow: WorkflowModel, seen = new Set<WorkflowModel>()): boolean {
  if (seen.has(workflow)) return false;
  seen.add(workflow);
  return workflow.steps.some(
    step =>
      worksInRepository(step) || (step.body.kind === 'uses' && needsRepository(step.body.workflow, seen)),
  );
}

function worksInRepository({ body }: StepModel): boolean {
  if (body.kind === 'land') return true;
  return (body.kind === 'agent' || body.kind === 'run') && body.work?.workspace.kind === 'worktree';
}

export interface PinnedBase {
  /** The branch that is checked out; `HEAD` if none is. */
  readonly ref: string;
  readonly commit: string;
}

/** What is checked out now: all workspaces of the run begin there, whatever happens to the checkout meanwhile. */
export async function pinBase({
  cwd,
  env,
}: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}): Promise<PinnedBase> {
  const { git, root } = await openRepository({ cwd, inheritEnv: env });
  const commit = await resolveCommit(git, 'HEAD');
  if (commit === undefined) {
    throw new RepriseError('WORKSPACE_FAILED', `the repository in ${root ?? cwd} has no commit yet`, {
      hint: 'workspaces begin with a commit: git add --all && git commit --message "First commit"',
    });
  }
  const branch = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  return { ref: branch.code === 0 ? branch.stdout.trim() : 'HEAD', commit };
}
