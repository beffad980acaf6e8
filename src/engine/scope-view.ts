import { type Json, toJson } from '../core/json.ts';
import type { Scope, StepView } from '../workflow/model.ts';
import type { GraphNode } from './graph.ts';
import type { NodeState, ScopeState } from './node-state.ts';
import type { RunState } from './state.ts';

/** What a step may read: its workflow's input and the steps it needs. */
export function scopeOfStep(state: RunState, node: GraphNode): Scope {
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

/** What a workflow gives back: what it declares, or the output of every sink. */
export function outputOfScope(state: RunState, { scope, input }: ScopeState): Json {
  const { output } = scope.workflow;
  if (output) return toJson(output({ inputs: input, steps: viewsOf(state, scope.nodes), status: 'success' }));
  const sinks = scope.nodes.filter(node => node.dependants.length === 0);
  return Object.fromEntries(sinks.map(node => [node.step.id, state.of(node).output ?? null]));
}

/** Without a prototype, so that a step may have any name. */
function viewsOf(state: RunState, nodes: readonly GraphNode[]): Record<string, StepView> {
  const views: Record<string, StepView> = Object.create(null);
  for (const node of nodes) views[node.step.id] = viewOf(state.of(node));
  return views;
}

function viewOf({ node, status, output }: NodeState): StepView {
  const outcome = outcomeOf(status);
  return {
    outcome,
    conclusion: outcome === 'failure' && node.step.optional ? 'success' : outcome,
    outputs: output,
  };
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
