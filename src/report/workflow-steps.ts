import { topologicalOrder } from '../workflow/graph.ts';
import type { FanOut, Scope, StepModel, WorkflowModel } from '../workflow/model.ts';

/** A step of a workflow or of one that it uses, in the stable topological order that runs record. */
export interface PlacedStep {
  readonly path: string;
  readonly step: StepModel;
}

/** All of them, the steps of a child workflow right after the step that uses it. */
export function stepsOf(workflow: WorkflowModel, prefix = ''): readonly PlacedStep[] {
  return inOrder(workflow).flatMap(step => {
    const path = `${prefix}${step.id}`;
    const inner = step.body.kind === 'uses' ? stepsOf(step.body.workflow, `${path}/`) : [];
    return [{ path, step }, ...inner];
  });
}

/** The steps of one workflow, each after all that it needs. */
export function inOrder({ steps }: WorkflowModel): readonly StepModel[] {
  const sorted = topologicalOrder(steps);
  return sorted.kind === 'ordered' ? sorted.order : steps;
}

/** `x3` for copies, `matrix`, `select`. How many there are of a matrix is known when it runs. */
export function fanOutMarks({ kind, items, maxParallel, select }: FanOut): readonly string[] {
  const copies = kind === 'matrix' ? 'matrix' : `x${copiesOf(items)}`;
  const limit = maxParallel === undefined ? '' : `, ${maxParallel} at once`;
  return [`${copies}${limit}`, ...(select ? ['selects one'] : [])];
}

/** A number that depends on what the step may read is known when it runs. */
function copiesOf(items: FanOut['items']): string {
  const nothing: Scope = { inputs: {}, steps: {}, status: 'success' };
  try {
    return String(items(nothing).length);
  } catch {
    return 'N';
  }
}
