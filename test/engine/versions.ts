import { step, workflow } from '../../src/workflow/builder/index.ts';
import type { WorkflowModel } from '../../src/workflow/model.ts';

/** Returns a workflow whose steps record that they ran. `version` changes a definition without changing its id. */
export function diamond(
  runs: string[],
  version: Partial<Record<'a' | 'b' | 'c' | 'd', number>> = {},
): WorkflowModel {
  const note = (id: string, number: number | undefined) => () => {
    runs.push(id);
    return `${id}${number ?? ''}`;
  };
  const a = step('a', { run: note('a', version.a) });
  const b = step('b', { after: { a }, run: note('b', version.b) });
  const c = step('c', { after: { a }, run: note('c', version.c) });
  const d = step('d', { after: { b, c }, run: note('d', version.d) });
  const { model } = workflow('diamond', { steps: [a, b, c, d] });
  const numbered = (id: string) => version[id as 'a'] ?? 0;
  return {
    ...model,
    steps: model.steps.map(step => ({ ...step, fingerprint: `${step.id}-${numbered(step.id)}` })),
  };
}
