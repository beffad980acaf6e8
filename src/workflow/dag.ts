/** What the graph functions need to know of a step. */
export interface DagNode {
  readonly id: string;
  readonly needs: readonly { readonly id: string }[];
}

export type TopologicalOrder<T> =
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
