import { nearest } from '../core/suggest.ts';

/** What the graph functions need to know of a step. */
export interface DagNode {
  readonly id: string;
  readonly needs: readonly { readonly id: string }[];
}

type TopologicalOrder<T> =
  | { readonly kind: 'ordered'; readonly order: readonly T[] }
  /** The ids along the circle; the first is repeated at the end. */
  | { readonly kind: 'cycle'; readonly path: readonly string[] };

/**
 * Every step after all that it needs, and otherwise as written: the same definition always gives the same order.
 * Unknown ids are passed over. O(V+E), and no recursion, so that a chain of 100,000 steps does not overflow the stack.
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
        return { kind: 'cycle', path: circle([...open], need.id) };
      } else {
        const next = done.has(need.id) ? undefined : byId.get(need.id);
        if (next) stack.push(visit(next, open));
      }
    }
  }
  return { kind: 'ordered', order };
}

/** Most people write steps down in an order in which they can run. */
function isOrdered(nodes: readonly DagNode[]): boolean {
  const seen = new Set<string>();
  for (const { id, needs } of nodes) {
    for (const need of needs) if (!seen.has(need.id)) return false;
    seen.add(id);
  }
  // An id that is there twice would be one step too many.
  return seen.size === nodes.length;
}

function visit<T extends DagNode>(node: T, open: Set<string>) {
  open.add(node.id);
  return { node, next: 0 };
}

/** Read along the arrows of time: each step comes before the next, and the last before the first. */
function circle(path: readonly string[], again: string): string[] {
  const around = path.slice(path.indexOf(again)).reverse();
  return [again, ...around.slice(0, -1), again];
}

/** What can be wrong with how steps depend on each other. `index` is the step's place in the list. */
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
      /** The id that was probably meant. */
      readonly nearest: string | undefined;
    }
  | { readonly kind: 'self-need'; readonly id: string; readonly index: number }
  /** Each step comes before the next; the first is repeated at the end. */
  | { readonly kind: 'cycle'; readonly path: readonly string[] };

/** A suggestion looks at every id, so a graph full of unknown ones gets no more than this. */
const maxSuggestions = 20;
/** Each search looks at the whole graph. */
const maxCycles = 20;

/** Where each id stands first. */
export function indexById(steps: readonly { readonly id: string }[]): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  steps.forEach(({ id }, index) => {
    if (!indexes.has(id)) indexes.set(id, index);
  });
  return indexes;
}

/** Every problem at once: those of single steps in their order, then one cycle from each knot, up to 20. */
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
  // Where every step needs only earlier ones, there is no way back.
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
