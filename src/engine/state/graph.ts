import { type HistoryEvent, type Mutable, RepriseError } from '../../core/index.ts';
import {
  type Body,
  type FailurePolicy,
  type FanOut,
  type StepModel,
  topologicalOrder,
  type WorkflowModel,
} from '../../workflow/index.ts';

/** A step in the graph. The steps of a child workflow are nodes below the step that uses it, in the same graph. */
export interface GraphNode {
  /** Position in the stable topological order. */
  readonly index: number;
  /** Path of the step: `deploy`, or `deploy/build` inside a child workflow. */
  readonly path: string;
  /** Index of the copy, if this is a copy of a fanned-out step. */
  readonly worker: number | undefined;
  /** Unique name: the path, or `path:worker` for a copy. */
  readonly unit: string;
  readonly step: StepModel;
  readonly scope: GraphScope;
  /** Direct dependencies, without duplicates. */
  readonly needs: readonly GraphNode[];
  readonly dependants: readonly GraphNode[];
  /** Dependencies that may end with any status. */
  readonly tolerates: ReadonlySet<GraphNode>;
  /** Steps of the child workflow that this step uses. If the step fans out, the template for each copy. */
  readonly child: WorkflowScope | undefined;
  /** Fan-out rule. A step that has one does no work itself. */
  readonly fanOut: FanOut | undefined;
}

interface BaseScope {
  readonly index: number;
  /** Step that contains this scope; `undefined` for the run itself. */
  readonly parent: GraphNode | undefined;
  readonly nodes: readonly GraphNode[];
  readonly onFailure: FailurePolicy;
}

/** The steps of the run's workflow or of a child workflow. */
interface WorkflowScope extends BaseScope {
  readonly kind: 'workflow';
  readonly workflow: WorkflowModel;
}

/** The copies of a fanned-out step. */
interface WorkersScope extends BaseScope {
  readonly kind: 'workers';
  readonly parent: GraphNode;
  readonly fanOut: FanOut;
}

export type GraphScope = WorkflowScope | WorkersScope;

export interface Graph {
  readonly root: WorkflowScope;
  readonly scopes: readonly GraphScope[];
  readonly nodes: readonly GraphNode[];
  readonly byPath: ReadonlyMap<string, GraphNode>;
}

/** Builds one graph from a workflow and its children in O(V+E). Throws DEFINITION_INVALID. */
export function buildGraph(workflow: WorkflowModel): Graph {
  const layout: GraphLayout = { nodes: [], scopes: [], byPath: new Map(), firstNode: 0, firstScope: 0 };
  const root = layOut(layout, workflow, undefined);
  const { nodes, scopes, byPath } = layout;
  return { root, nodes, scopes, byPath };
}

/** The nodes and scopes that a fan-out adds to a graph. */
interface Expansion {
  readonly workers: WorkersScope;
  /** New nodes in index order: the copies and the steps inside them. */
  readonly nodes: readonly GraphNode[];
  readonly scopes: readonly GraphScope[];
}

/** Creates the copies of a step that fans out. Their indexes start at the given ones. */
export function expand(
  parent: GraphNode,
  total: number,
  { firstNode, firstScope }: Pick<GraphLayout, 'firstNode' | 'firstScope'>,
): Expansion {
  const { fanOut } = parent;
  if (!fanOut) throw new RepriseError('INTERNAL', `${parent.unit} does not fan out`);
  const layout: GraphLayout = { nodes: [], scopes: [], byPath: new Map(), firstNode, firstScope };
  const nodes: GraphNode[] = [];
  const { onFailure } = fanOut;
  const workers: WorkersScope = { kind: 'workers', index: firstScope, parent, nodes, onFailure, fanOut };
  layout.scopes.push(workers);
  const step: StepModel = {
    ...parent.step,
    needs: [],
    condition: undefined,
    optional: false,
    fanOut: undefined,
    // It may be a getter, which the spread does not copy.
    fingerprint: parent.step.fingerprint,
  };
  for (let worker = 0; worker < total; worker++) {
    const node: Mutable<GraphNode> = {
      index: firstNode + layout.nodes.length,
      path: parent.path,
      worker,
      unit: unitOf(parent.path, worker),
      step,
      scope: workers,
      needs: noNodes,
      tolerates: none,
      dependants: noNodes,
      child: undefined,
      fanOut: undefined,
    };
    nodes.push(node);
    layout.nodes.push(node);
    if (step.body.kind === 'uses') node.child = layOut(layout, step.body.workflow, node);
  }
  return { workers, nodes: layout.nodes, scopes: layout.scopes };
}

interface GraphLayout {
  readonly nodes: GraphNode[];
  readonly scopes: GraphScope[];
  readonly byPath: Map<string, GraphNode>;
  readonly firstNode: number;
  readonly firstScope: number;
}

function layOut(layout: GraphLayout, workflow: WorkflowModel, parent: GraphNode | undefined): WorkflowScope {
  const { steps, onFailure } = workflow;
  const nodes: GraphNode[] = [];
  const index = layout.firstScope + layout.scopes.length;
  const scope: WorkflowScope = { kind: 'workflow', index, workflow, parent, nodes, onFailure };
  layout.scopes.push(scope);
  // Definitions usually list steps in an order in which they can run. As far as they do, it is the stable order too.
  for (const step of steps) {
    const node = place(layout, scope, step);
    if (!node) break;
    nodes.push(node);
  }
  if (nodes.length < steps.length) placeRest(layout, scope, nodes);
  return scope;
}

function placeRest(layout: GraphLayout, scope: WorkflowScope, nodes: GraphNode[]): void {
  const { steps, name } = scope.workflow;
  const sorted = topologicalOrder(steps);
  if (sorted.kind === 'cycle') {
    throw new RepriseError(
      'DEFINITION_INVALID',
      `steps of ${name} depend on each other in a cycle: ${sorted.path.join(' -> ')}`,
    );
  }
  for (const step of sorted.order.slice(nodes.length)) {
    const node = place(layout, scope, step);
    if (!node) throw missingNeed(layout, scope, step);
    nodes.push(node);
  }
}

const none: ReadonlySet<GraphNode> = new Set();
const noNodes: readonly GraphNode[] = [];

/** Returns `undefined` if the step already has a node or a dependency does not have one yet. */
function place(layout: GraphLayout, scope: GraphScope, step: StepModel): GraphNode | undefined {
  const path = pathIn(scope, step.id);
  const needs = needsOf(layout, scope, step);
  if (!needs || layout.byPath.has(path)) return undefined;
  const node: Mutable<GraphNode> = {
    index: layout.firstNode + layout.nodes.length,
    path,
    worker: undefined,
    unit: path,
    step,
    scope,
    needs,
    tolerates: toleratedBy(step, needs),
    dependants: noNodes,
    child: undefined,
    fanOut: step.fanOut,
  };
  for (const need of needs) addDependant(need, node);
  layout.nodes.push(node);
  layout.byPath.set(path, node);
  if (step.body.kind === 'uses') node.child = layOut(layout, step.body.workflow, node);
  return node;
}

const pathIn = ({ parent }: GraphScope, id: string): string => (parent ? `${parent.unit}/${id}` : id);

/** Returns `undefined` if a dependency has no node yet. Most steps have at most one dependency and need no set. */
function needsOf(
  layout: GraphLayout,
  scope: GraphScope,
  { needs }: StepModel,
): readonly GraphNode[] | undefined {
  const first = needs[0];
  if (!first) return noNodes;
  const need = layout.byPath.get(pathIn(scope, first.id));
  if (!need || needs.length === 1) return need && [need];
  const found = new Set([need]);
  for (const { id } of needs) {
    const other = layout.byPath.get(pathIn(scope, id));
    if (!other) return undefined;
    found.add(other);
  }
  return Array.from(found);
}

function toleratedBy({ needs: written }: StepModel, needs: readonly GraphNode[]): ReadonlySet<GraphNode> {
  if (written.length === 0 || !written.some(({ tolerant }) => tolerant)) return none;
  const ids = new Set(written.filter(({ tolerant }) => tolerant).map(({ id }) => id));
  return new Set(needs.filter(({ step }) => ids.has(step.id)));
}

function missingNeed(layout: GraphLayout, scope: GraphScope, { id, needs }: StepModel): RepriseError {
  const missing = needs.find(need => !layout.byPath.has(pathIn(scope, need.id)));
  return new RepriseError(
    'DEFINITION_INVALID',
    `${pathIn(scope, id)} needs ${missing?.id}, which does not exist`,
  );
}

/** Avoids `push` for short lists: it reserves room for 17 more entries, and most steps have few dependants. */
function addDependant(need: Mutable<GraphNode>, dependant: GraphNode): void {
  if (need.dependants.length === 0) need.dependants = [dependant];
  else if (need.dependants.length < 3) need.dependants = need.dependants.concat(dependant);
  else (need.dependants as GraphNode[]).push(dependant);
}

/** Whether the node only contains other nodes: it takes no slot and does no work. */
export const hasInside = ({ child, fanOut }: GraphNode): boolean =>
  child !== undefined || fanOut !== undefined;

/** Whether a step of this kind acts outside of this process. */
export const isOutside = ({ kind }: Body): boolean =>
  kind === 'run' || kind === 'agent' || kind === 'land' || kind === 'built-in';

/** Returns the fields that address the events of a node. */
export const envelopeOf = ({ path, worker }: GraphNode): { step: string; worker?: number } =>
  worker === undefined ? { step: path } : { step: path, worker };

/** Returns the name of a unit: a step (`fix`), a copy of it (`fix:1`), or a step inside a copy (`fix:1/build`). */
export const unitOf = (step: string, worker: number | undefined): string =>
  worker === undefined ? step : `${step}:${worker}`;

/** Returns the unit that an event belongs to, or `undefined` for an event of the run. */
export const unitOfEvent = ({ step, worker }: Pick<HistoryEvent, 'step' | 'worker'>): string | undefined =>
  step === undefined ? undefined : unitOf(step, worker);

/** Returns the path of the step that defines a unit. */
export const definitionPath = (unit: string): string =>
  unit.includes(':') ? unit.replace(/:\d+/g, '') : unit;

/** Returns the units that contain a unit, innermost first: `a:1`, `a` for `a:1/b`. */
export function outerUnits(unit: string): readonly string[] {
  const outer: string[] = [];
  for (let at = unit.length - 1; at > 0; at--) {
    const sign = unit[at];
    if (sign === '/' || sign === ':') outer.push(unit.slice(0, at));
  }
  return outer;
}

/** Returns the unit of another step of the same workflow. */
export function siblingUnit(unit: string, id: string): string {
  const slash = unit.lastIndexOf('/');
  return slash === -1 ? id : `${unit.slice(0, slash + 1)}${id}`;
}
