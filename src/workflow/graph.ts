import { hash } from 'node:crypto';
import { canonicalJson, type Json, nearest } from '../core/index.ts';

/** The part of a step that the graph functions need. */
export interface DagNode {
  readonly id: string;
  readonly needs: readonly { readonly id: string }[];
}

type TopologicalOrder<T> =
  | { readonly kind: 'ordered'; readonly order: readonly T[] }
  /** Ids along the cycle. The first is repeated at the end. */
  | { readonly kind: 'cycle'; readonly path: readonly string[] };

/**
 * Sorts steps so that each comes after all steps that it needs, and otherwise keeps the written order. The result is
 * deterministic. Unknown ids are ignored. O(V+E) and iterative: a chain of 100,000 steps must not overflow the stack.
 */
export function topologicalOrder<T extends DagNode>(nodes: readonly T[]): TopologicalOrder<T> {
  if (isOrdered(nodes)) return { kind: 'ordered', order: nodes };
  const byId = new Map(nodes.map(node => [node.id, node]));
  const done = new Set<string>();
  const open = new Set<string>();
  const order: T[] = [];
  for (const root of nodes) {
    const stack = done.has(root.id) ? [] : [visit(root, open)];
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const need = top.node.needs[top.next++];
      if (!need) {
        open.delete(top.node.id);
        done.add(top.node.id);
        order.push(top.node);
        stack.pop();
      } else if (open.has(need.id)) {
        return { kind: 'cycle', path: cycleThrough(need.id, [...open]) };
      } else {
        const next = done.has(need.id) ? undefined : byId.get(need.id);
        if (next) stack.push(visit(next, open));
      }
    }
  }
  return { kind: 'ordered', order };
}

/** Fast path: most definitions already list their steps in an order in which they can run. */
function isOrdered(nodes: readonly DagNode[]): boolean {
  const seen = new Set<string>();
  for (const { id, needs } of nodes) {
    for (const need of needs) if (!seen.has(need.id)) return false;
    seen.add(id);
  }
  // With a duplicate id, the written order would contain one step too many.
  return seen.size === nodes.length;
}

function visit<T extends DagNode>(node: T, open: Set<string>) {
  open.add(node.id);
  return { node, next: 0 };
}

/** The cycle in execution order: each step would run before the next one. */
function cycleThrough(id: string, path: readonly string[]): string[] {
  const cycle = path.slice(path.indexOf(id)).reverse();
  return [id, ...cycle.slice(0, -1), id];
}

/** An error in the dependencies of steps. `index` is the position of the step in the list. */
export type GraphProblem =
  | {
      readonly kind: 'duplicate-id';
      readonly id: string;
      readonly index: number;
      readonly firstIndex: number;
    }
  | {
      readonly kind: 'unknown-need';
      readonly id: string;
      readonly index: number;
      readonly need: string;
      /** Id that was probably meant. */
      readonly nearest: string | undefined;
    }
  | { readonly kind: 'self-need'; readonly id: string; readonly index: number }
  /** Each step would run before the next. The first is repeated at the end. */
  | { readonly kind: 'cycle'; readonly path: readonly string[] };

/** Each suggestion takes a comparison with every id, so the number of suggestions is limited. */
const maxSuggestions = 20;
/** Each search visits the whole graph. */
const maxCycles = 20;

/** Maps each id to the index of its first step. */
export function indexById(steps: readonly { readonly id: string }[]): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  steps.forEach(({ id }, index) => {
    if (!indexes.has(id)) indexes.set(id, index);
  });
  return indexes;
}

/** Returns all problems: those of single steps in their order, then at most 20 disjoint cycles. */
export function graphProblems(
  steps: readonly DagNode[],
  firstIndexes: ReadonlyMap<string, number> = indexById(steps),
): GraphProblem[] {
  const problems: GraphProblem[] = [];
  let suggestions = 0;
  let looksAhead = false;
  const hasDuplicates = firstIndexes.size < steps.length;
  steps.forEach(({ id, needs }, index) => {
    const firstIndex = hasDuplicates ? (firstIndexes.get(id) ?? index) : index;
    if (firstIndex !== index) problems.push({ kind: 'duplicate-id', id, index, firstIndex });
    for (const { id: need } of needs) {
      const needIndex = firstIndexes.get(need);
      if (need === id) {
        problems.push({ kind: 'self-need', id, index });
      } else if (needIndex !== undefined) {
        looksAhead ||= needIndex > index;
      } else {
        const suggestion = suggestions++ < maxSuggestions ? nearest(need, firstIndexes.keys()) : undefined;
        problems.push({ kind: 'unknown-need', id, index, need, nearest: suggestion });
      }
    }
  });
  // If every step needs only earlier steps, there is no cycle.
  return looksAhead ? [...problems, ...cycles(steps)] : problems;
}

function cycles(steps: readonly DagNode[]): GraphProblem[] {
  const found: GraphProblem[] = [];
  let rest = steps.map(({ id, needs }) => ({ id, needs: needs.filter(need => need.id !== id) }));
  while (found.length < maxCycles) {
    const sorted = topologicalOrder(rest);
    if (sorted.kind === 'ordered') break;
    found.push({ kind: 'cycle', path: sorted.path });
    const path = new Set(sorted.path);
    rest = rest.filter(({ id }) => !path.has(id));
  }
  return found;
}

/** Returns a hash of 16 hex digits. The order of keys does not affect it. */
export const fingerprintOf = (description: Json): string => fingerprintOfText(canonicalJson(description));

/** Like `fingerprintOf`, for a description that is already serialized. */
export const fingerprintOfText = (description: string): string => hash('sha256', description).slice(0, 16);
