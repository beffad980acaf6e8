import { isJsonObject, type Json, toJson } from '../../core/index.ts';
import type { Scope, StepView } from '../../workflow/index.ts';
import { pathsByName } from '../run/result.ts';
import type { GraphNode } from './graph.ts';
import type { RunState } from './run-state.ts';
import type { NodeState, ScopeState } from './step-state.ts';

/** Returns the values that a step may read: the input of its workflow and its dependencies. */
export function scopeOfStep(state: RunState, node: GraphNode): Scope {
  const { parent } = node.scope;
  if (node.worker !== undefined && parent) {
    const matrix = state.of(parent).items?.[node.worker];
    return { ...scopeOfStep(state, parent), ...(isJsonObject(matrix) ? { matrix } : {}) };
  }
  const scope = state.scopeOf(node.scope);
  return {
    inputs: scope.input,
    steps: viewsOf(state, node.needs),
    status:
      scope.stop === 'cancel'
        ? 'cancelled'
        : node.needs.some(need => state.of(need).tainted)
          ? 'failure'
          : 'success',
  };
}

/** Returns the declared output of a workflow, or else the output of every step without dependants. */
export function outputOfScope(state: RunState, { scope, input }: ScopeState): Json {
  const output = scope.kind === 'workflow' ? scope.workflow.output : undefined;
  if (output) return toJson(output({ inputs: input, steps: viewsOf(state, scope.nodes), status: 'success' }));
  const sinks = scope.nodes.filter(node => node.dependants.length === 0);
  return Object.fromEntries(sinks.map(node => [node.step.id, state.of(node).output ?? null]));
}

/** The result has no prototype, so that a step may have any name. */
function viewsOf(state: RunState, nodes: readonly GraphNode[]): Record<string, StepView> {
  const views: Record<string, StepView> = Object.create(null);
  for (const node of nodes) views[node.step.id] = viewOf(state, state.of(node));
  return views;
}

function viewOf(state: RunState, nodeState: NodeState): StepView {
  const { node, status, output } = nodeState;
  const outcome = outcomeOf(status);
  const { work, artifacts } = keptUnit(state, nodeState);
  const workspace = work?.workspace;
  return {
    outcome,
    conclusion: outcome === 'failure' && node.step.optional ? 'success' : outcome,
    outputs: output,
    ...(artifacts ? { artifacts: pathsByName(artifacts, state.folders) } : {}),
    ...(workspace ? { branch: workspace.branch, commit: workspace.commit ?? workspace.base } : {}),
  };
}

/** Returns the unit whose work later steps build on: the step itself or its selected copy. */
export function keptUnit(state: RunState, step: NodeState): NodeState {
  const winner = step.selection && step.workers?.scope.nodes[step.selection.winner];
  return winner ? state.of(winner) : step;
}

function outcomeOf(status: NodeState['status']): StepView['outcome'] {
  switch (status) {
    case 'completed':
      return 'success';
    case 'failed':
      return 'failure';
    case 'cancelled':
      return 'cancelled';
    case 'skipped':
    case 'pending':
    case 'running':
    case 'waiting':
    case 'woken':
      return 'skipped';
  }
}
