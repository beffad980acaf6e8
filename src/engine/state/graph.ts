import { RepriseError } from '../../core/errors.ts';
import type { HistoryEvent } from '../../core/events.ts';
import { topologicalOrder } from '../../workflow/graph.ts';
import type { FailurePolicy, FanOut, StepModel, WorkflowModel } from '../../workflow/model.ts';

/** A step in its place. Child workflows are laid out below the step that uses them, so one graph holds all. */
export interface GraphNode {
  /** Its place in the stable topological order. */
  readonly index: number;
  /** `deploy`, or inside a child workflow `deploy/build`. */
  readonly path: string;
  /** Index of the copy, for a worker of a step that fans out. */
  readonly worker: number | undefined;
  /** What tells it from all others: its path, and for a worker `path:worker`. */
  readonly unit: string;
  readonly step: StepModel;
  readonly scope: GraphScope;
  /** Each once. */
  readonly needs: readonly GraphNode[];
  readonly dependants: readonly GraphNode[];
  /** Those of its needs that may end in any way. */
  readonly tolerates: ReadonlySet<GraphNode>;
  /** The steps of the child workflow that it uses; if it fans out, what they are for each worker. */
  readonly child: WorkflowScope | undefined;
  /** It becomes workers, and does nothing itself. */
  readonly fanOut: FanOut | undefined;
}

interface Scope {
  readonly index: number;
  /** The step that it is inside of; undefined for the run itself. */
  readonly parent: GraphNode | undefined;
  readonly nodes: readonly GraphNode[];
  readonly onFailure: FailurePolicy;
}

/** The steps of one workflow: of the run itself, or of a child. */
interface WorkflowScope extends Scope {
  readonly kind: 'workflow';
  readonly workflow: WorkflowModel;
}

/** The workers of a step that fanned out. */
interface WorkersScope extends Scope {
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

/** Lays a workflow and its children out as one graph. O(V+E). */
export function buildGraph(workflow: WorkflowModel): Graph {
  const layout: Layout = { nodes: [], scopes: [], byPath: new Map(), firstNode: 0, firstScope: 0 };
  const root = layOut(layout, workflow, undefined);
  const { nodes, scopes, byPath } = layout;
  return { root, nodes, scopes, byPath };
}

/** What a fan-out adds to a graph. */
interface Expansion {
  readonly workers: WorkersScope;
  /** All that is new, in the order of their indexes: the workers, and what is inside them. */
  readonly nodes: readonly GraphNode[];
  readonly scopes: readonly GraphScope[];
}

/** The workers of a step that fans out; new indexes begin with those given. */
export function expand(
  parent: GraphNode,
  total: number,
  { firstNode, firstScope }: Pick<Layout, 'firstNode' | 'firstScope'>,
): Expansion {
  const { fanOut } = parent;
  if (!fanOut) throw new RepriseError('INTERNAL', `${parent.unit} does not fan out`);
  const layout: Layout = { nodes: [], scopes: [], byPath: new Map(), firstNode, firstScope };
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
    // It may be a getter, which a spread leaves behind.
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
      needs: nobody,
      tolerates: none,
      dependants: nobody,
      child: undefined,
      fanOut: undefined,
    };
    nodes.push(node);
    layout.nodes.push(node);
    if (step.body.kind === 'uses') node.child = layOut(layout, step.body.workflow, node);
  }
  return { workers, nodes: layout.nodes, scopes: layout.scopes };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Layout {
  readonly nodes: GraphNode[];
  readonly scopes: GraphScope[];
  readonly byPath: Map<string, GraphNode>;
  readonly firstNode: number;
  readonly firstScope: number;
}

function layOut(layout: Layout, workflow: WorkflowModel, parent: GraphNode | undefined): WorkflowScope {
  const { steps, onFailure } = workflow;
  const nodes: GraphNode[] = [];
  const index = layout.firstScope + layout.scopes.length;
  const scope: WorkflowScope = { kind: 'workflow', index, workflow, parent, nodes, onFailure };
  layout.scopes.push(scope);
  // Most people write steps down in an order in which they can run: as far as that is so, it is the stable one too.
  for (const step of steps) {
    const node = place(layout, scope, step);
    if (!node) break;
    nodes.push(node);
  }
  if (nodes.length < steps.length) placeRest(layout, scope, nodes);
  return scope;
}

function placeRest(layout: Layout, scope: WorkflowScope, nodes: GraphNode[]): void {
  const { steps, name } = scope.workflow;
  const sorted = topologicalOrder(steps);
  if (sorted.kind === 'cycle') {
    throw new RepriseError(
      'DEFINITION_INVALID',
      `steps of ${name} wait for each other: ${sorted.path.join(' -> ')}`,
    );
  }
  for (const step of sorted.order.slice(nodes.length)) {
    const node = place(layout, scope, step);
    if (!node) throw missingNeed(layout, scope, step);
    nodes.push(node);
  }
}

const none: ReadonlySet<GraphNode> = new Set();
const nobody: readonly GraphNode[] = [];

/** Undefined if it is there already, or if one of its needs is not. */
function place(layout: Layout, scope: GraphScope, step: StepModel): GraphNode | undefined {
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
    dependants: nobody,
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

/** Each once; undefined if one is not there. Most steps need none or one other: no sets for those. */
function needsOf(layout: Layout, scope: GraphScope, { needs }: StepModel): readonly GraphNode[] | undefined {
  const first = needs[0];
  if (!first) return nobody;
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

function missingNeed(layout: Layout, scope: GraphScope, { id, needs }: StepModel): RepriseError {
  const missing = needs.find(need => !layout.byPath.has(pathIn(scope, need.id)));
  return new RepriseError(
    'DEFINITION_INVALID',
    `${pathIn(scope, id)} needs ${missing?.id}, which does not exist`,
  );
}

/** A list that something is pushed to gets room for seventeen more; a step rarely has more than a few dependants. */
function addDependant(need: Mutable<GraphNode>, dependant: GraphNode): void {
  if (need.dependants.length === 0) need.dependants = [dependant];
  else if (need.dependants.length < 3) need.dependants = need.dependants.concat(dependant);
  else (need.dependants as GraphNode[]).push(dependant);
}

/** Whether it is there for what is inside of it: it takes no place and does no work. */
export const hasInside = ({ child, fanOut }: GraphNode): boolean =>
  child !== undefined || fanOut !== undefined;

/** How its events are addressed. */
export const placeOf = ({ path, worker }: GraphNode): { step: string; worker?: number } =>
  worker === undefined ? { step: path } : { step: path, worker };

/** What runs as one: a step (`fix`), a worker of a fanned-out one (`fix:1`), or a step inside a worker (`fix:1/build`). */
export const unitOf = (step: string, worker: number | undefined): string =>
  worker === undefined ? step : `${step}:${worker}`;

/** The unit that an event is about; undefined for those of the run. */
export const unitOfEvent = ({ step, worker }: Pick<HistoryEvent, 'step' | 'worker'>): string | undefined =>
  step === undefined ? undefined : unitOf(step, worker);

/** The path of the step that a unit is a copy of. */
export const definitionPath = (unit: string): string =>
  unit.includes(':') ? unit.replace(/:\d+/g, '') : unit;

/** What a unit is inside of, from the inside out: `a:1`, `a` for `a:1/b`. */
export function outerUnits(unit: string): readonly string[] {
  const outer: string[] = [];
  for (let at = unit.length - 1; at > 0; at--) {
    const sign = unit[at];
    if (sign === '/' || sign === ':') outer.push(unit.slice(0, at));
  }
  return outer;
}

/** The unit of another step of the same workflow. */
export function siblingUnit(unit: string, id: string): string {
  const slash = unit.lastIndexOf('/');
  return slash === -1 ? id : `${unit.slice(0, slash + 1)}${id}`;
}
