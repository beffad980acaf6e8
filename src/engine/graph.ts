import { RepriseError } from '../core/errors.ts';
import { topologicalOrder } from '../workflow/dag.ts';
import type { StepModel, WorkflowModel } from '../workflow/model.ts';

/** A step in its place. Child workflows are laid out below the step that uses them, so one graph holds all. */
export interface GraphNode {
  /** Its place in the stable topological order. */
  readonly index: number;
  /** `deploy`, or inside a child workflow `deploy/build`. */
  readonly path: string;
  readonly step: StepModel;
  readonly scope: GraphScope;
  /** Each once. */
  readonly needs: readonly GraphNode[];
  readonly dependants: readonly GraphNode[];
  /** Those of its needs that may end in any way. */
  readonly tolerates: ReadonlySet<GraphNode>;
  /** The steps of the child workflow that it uses. */
  readonly child: GraphScope | undefined;
}

/** The steps of one workflow: of the run itself, or of a child. */
export interface GraphScope {
  readonly index: number;
  readonly workflow: WorkflowModel;
  /** The step that uses it; undefined for the run itself. */
  readonly parent: GraphNode | undefined;
  readonly nodes: readonly GraphNode[];
}

export interface Graph {
  readonly root: GraphScope;
  readonly scopes: readonly GraphScope[];
  readonly nodes: readonly GraphNode[];
  readonly byPath: ReadonlyMap<string, GraphNode>;
}

/** Lays a workflow and its children out as one graph. O(V+E). */
export function buildGraph(workflow: WorkflowModel): Graph {
  const layout: Layout = { nodes: [], scopes: [], byPath: new Map() };
  const root = layOut(layout, workflow, undefined);
  return { root, ...layout };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Layout {
  readonly nodes: GraphNode[];
  readonly scopes: GraphScope[];
  readonly byPath: Map<string, GraphNode>;
}

function layOut(layout: Layout, workflow: WorkflowModel, parent: GraphNode | undefined): GraphScope {
  const sorted = topologicalOrder(workflow.steps);
  if (sorted.kind === 'cycle') {
    throw new RepriseError(
      'DEFINITION_INVALID',
      `steps of ${workflow.name} wait for each other: ${sorted.path.join(' -> ')}`,
    );
  }
  const nodes: GraphNode[] = [];
  const scope: GraphScope = { index: layout.scopes.length, workflow, parent, nodes };
  layout.scopes.push(scope);
  for (const step of sorted.order) nodes.push(place(layout, scope, step));
  return scope;
}

function place(layout: Layout, scope: GraphScope, step: StepModel): GraphNode {
  const path = scope.parent ? `${scope.parent.path}/${step.id}` : step.id;
  const needs = new Set<GraphNode>();
  const tolerates = new Set<GraphNode>();
  for (const { id, tolerant } of step.needs) {
    const need = layout.byPath.get(scope.parent ? `${scope.parent.path}/${id}` : id);
    if (!need) throw new RepriseError('DEFINITION_INVALID', `${path} needs ${id}, which does not exist`);
    needs.add(need);
    if (tolerant) tolerates.add(need);
  }
  const node: Mutable<GraphNode> = {
    index: layout.nodes.length,
    path,
    step,
    scope,
    needs: [...needs],
    tolerates,
    dependants: [],
    child: undefined,
  };
  for (const need of needs) (need.dependants as GraphNode[]).push(node);
  layout.nodes.push(node);
  layout.byPath.set(path, node);
  if (step.body.kind === 'uses') node.child = layOut(layout, step.body.workflow, node);
  return node;
}

/**
 * What has to run again when the given steps do: they, what is inside them and what comes after them. The steps
 * whose child workflows contain them are opened again, without the rest of what is inside, and what comes after
 * those runs again too.
 */
export function affectedBy(roots: Iterable<GraphNode>): ReadonlySet<GraphNode> {
  const whole = new Set<GraphNode>();
  const reopened = new Set<GraphNode>();
  const queue = [...roots];
  for (let node = queue.pop(); node; node = queue.pop()) {
    if (whole.has(node)) continue;
    whole.add(node);
    queue.push(...node.dependants, ...(node.child?.nodes ?? []));
    for (let outer = node.scope.parent; outer && !reopened.has(outer); outer = outer.scope.parent) {
      reopened.add(outer);
      queue.push(...outer.dependants);
    }
  }
  return new Set([...whole, ...reopened]);
}
