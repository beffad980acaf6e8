import type { Position } from '../core/errors.ts';
import type { StepModel, WorkflowModel } from './model.ts';

/** An agent that a workflow wants to work with. */
export interface NamedAgent {
  readonly name: string;
  /** Path of the step that names it. */
  readonly step: string;
  /** Where it is named. */
  readonly position?: Position | undefined;
}

/** Every agent that a workflow names, judges and children included, in the order of the steps. */
export function agentNames(model: WorkflowModel): readonly NamedAgent[] {
  const named: NamedAgent[] = [];
  const seen = new Set<WorkflowModel>();
  const visit = ({ steps }: WorkflowModel, prefix: string): void => {
    for (const step of steps) {
      const path = `${prefix}${step.id}`;
      named.push(...namedBy(step).map(agent => ({ ...agent, step: path })));
      if (step.body.kind !== 'uses' || seen.has(step.body.workflow)) continue;
      // A child that is used twice names the same agents in the same places.
      seen.add(step.body.workflow);
      visit(step.body.workflow, `${path}/`);
    }
  };
  visit(model, '');
  return named;
}

function namedBy({ body, fanOut, position }: StepModel): readonly Omit<NamedAgent, 'step'>[] {
  const judge = fanOut?.select?.judge;
  return [
    ...(body.kind === 'agent' ? [{ name: body.agent, position: body.position ?? position }] : []),
    ...(judge ? [{ name: judge.agent, position: judge.position ?? position }] : []),
  ];
}
