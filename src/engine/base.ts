import { resolveBase } from '../git/base.ts';
import { openRepository } from '../git/repository.ts';
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
  const repository = await openRepository({ cwd, inheritEnv: env });
  const commit = await resolveBase(repository);
  const branch = await repository.git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  return { ref: branch.code === 0 ? branch.stdout.trim() : 'HEAD', commit };
}
