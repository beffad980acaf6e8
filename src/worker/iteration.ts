import type { StepModel, WorkflowModel, WorkRules } from '../workflow/index.ts';
import { dispatchOf, type WorkerRules, workerWorkflow } from './contract.ts';

/** Builds the workflow of one task. Its runs are recorded, resumed and shown like those of any other workflow. */
export function iterationWorkflow({ branch }: Pick<WorkerRules, 'branch'>): WorkflowModel {
  const work: WorkRules = {
    workspace: { kind: 'worktree', readonly: false, base: { kind: 'ref', name: () => branch } },
    setup: [],
    teardown: [],
    checks: [],
    artifacts: [],
  };
  return {
    name: workerWorkflow,
    description: 'Picks a task, works on it and lands the result.',
    input: { parse: raw => raw as never, fields: [] },
    onFailure: 'fail-fast',
    steps: [
      builtIn('dispatch', { needs: [] }),
      { ...builtIn('work', { needs: ['dispatch'], work }), condition: isDispatched },
      { ...builtIn('land', { needs: ['dispatch', 'work'] }), condition: isDispatched },
    ],
    output: ({ steps }) => ({
      task: steps['dispatch']?.outputs ?? null,
      landing: steps['land']?.outputs ?? null,
    }),
  };
}

const isDispatched: NonNullable<StepModel['condition']> = scope => (dispatchOf(scope)?.task ?? null) !== null;

function builtIn(
  name: string,
  { needs, work }: { readonly needs: readonly string[]; readonly work?: WorkRules },
): StepModel {
  return {
    id: name,
    needs: needs.map(id => ({ id, tolerant: false })),
    optional: false,
    timeout: {},
    body: { kind: 'built-in', name, ...(work ? { work } : {}) },
    fingerprint: `${workerWorkflow}.${name}.1`,
  };
}
