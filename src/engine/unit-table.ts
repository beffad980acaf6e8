import { RepriseError } from '../core/errors.ts';
import { expand, type Graph, type GraphNode, type GraphScope } from './state/graph.ts';
import { NodeState, ScopeState } from './state/step-state.ts';

/** The states of all steps and workers of a run, which fan-outs add to. */
export class UnitTable {
  readonly nodes: NodeState[];
  readonly #scopes: ScopeState[];
  /** Workers, and what is inside them, by unit: the graph does not know them. */
  readonly #expanded = new Map<string, NodeState>();
  readonly #attempts: ReadonlyMap<string, number>;
  /** Most events are about the same unit as the one before. */
  #lastAsked: NodeState | undefined;

  /** `attempts`: how often units were tried before they were invalidated. */
  constructor(
    readonly graph: Graph,
    attempts: ReadonlyMap<string, number> = new Map(),
  ) {
    this.#attempts = attempts;
    this.nodes =
      attempts.size === 0
        ? graph.nodes.map(node => new NodeState(node))
        : graph.nodes.map(node => new NodeState(node, attempts.get(node.unit)));
    this.#scopes = graph.scopes.map(scope => new ScopeState(scope));
  }

  of(node: GraphNode): NodeState {
    const state = this.nodes[node.index];
    if (!state) throw new RepriseError('INTERNAL', `${node.unit} is not in this graph`);
    return state;
  }

  scopeOf(scope: GraphScope): ScopeState {
    const state = this.#scopes[scope.index];
    if (!state) throw new RepriseError('INTERNAL', `scope ${scope.index} is not in this graph`);
    return state;
  }

  /** The step or worker of that name. */
  at(unit: string): NodeState | undefined {
    if (this.#lastAsked?.node.unit === unit) return this.#lastAsked;
    const node = this.graph.byPath.get(unit);
    this.#lastAsked = node ? this.of(node) : this.#expanded.get(unit);
    return this.#lastAsked;
  }

  /** What is inside of it: the steps of a child workflow, or the workers that it has become. */
  insideOf({ node, workers }: NodeState): ScopeState | undefined {
    if (node.fanOut) return workers;
    return node.child && this.scopeOf(node.child);
  }

  /** Makes the workers of a step that fans out. Their attempts go on counting if it did so before. */
  protected addWorkers(parent: GraphNode, total: number): ScopeState {
    const added = expand(parent, total, {
      firstNode: this.nodes.length,
      firstScope: this.#scopes.length,
    });
    this.#lastAsked = undefined;
    for (const node of added.nodes) {
      const before = this.#expanded.get(node.unit)?.attempt ?? this.#attempts.get(node.unit);
      const inside = new NodeState(node, before);
      this.nodes.push(inside);
      this.#expanded.set(node.unit, inside);
    }
    for (const scope of added.scopes) this.#scopes.push(new ScopeState(scope));
    return this.scopeOf(added.workers);
  }

  /** Everything in it back to the beginning; workers are made anew. */
  protected resetScope(scope: GraphScope): void {
    Object.assign(this.scopeOf(scope), new ScopeState(scope));
    for (const node of scope.nodes) {
      this.of(node).reset();
      if (node.child && !node.fanOut) this.resetScope(node.child);
    }
  }
}
