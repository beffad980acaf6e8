import type { StepModel, WorkflowModel } from '../workflow/model.ts';

/** Whether a step of the workflow, or of a child, does something outside of this process. */
export const needsWork = (workflow: WorkflowModel): boolean =>
  hasStep(workflow, ({ body }) => outside.has(body.kind));

const outside: ReadonlySet<string> = new Set(['run', 'agent', 'land', 'built-in']);

/** Whether a step of the workflow, or of a child, works with the repository. */
export const needsRepository = (workflow: WorkflowModel): boolean =>
  hasStep(workflow, ({ body }) => {
    if (body.kind === 'land') return true;
    return (body.kind === 'agent' || body.kind === 'run') && body.work?.workspace.kind === 'worktree';
  });

function hasStep(
  workflow: WorkflowModel,
  wanted: (step: StepModel) => boolean,
  seen = new Set<WorkflowModel>(),
): boolean {
  if (seen.has(workflow)) return false;
  seen.add(workflow);
  return workflow.steps.some(
    step => wanted(step) || (step.body.kind === 'uses' && hasStep(step.body.workflow, wanted, seen)),
  );
}
