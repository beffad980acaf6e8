import type { HistoryEvent } from '../core/event.ts';
import type { Graph, GraphNode } from './graph.ts';

/** What differs between a definition and the one that a history was made with. */
export interface DefinitionChanges {
  /** Steps that ran, or were skipped, and are defined otherwise now. */
  readonly changed: readonly GraphNode[];
  /** Paths of steps that ran and no longer exist. */
  readonly removed: readonly string[];
}

/** Steps that never ran may change freely: nothing depends on what they were. The last start of a step counts. */
export function findChanges(graph: Graph, history: readonly HistoryEvent[]): DefinitionChanges {
  const changed = new Set<GraphNode>();
  const removed = new Set<string>();
  for (const event of history) {
    if ((event.type !== 'step.started' && event.type !== 'step.skipped') || event.step === undefined)
      continue;
    const node = graph.byPath.get(event.step);
    if (!node) removed.add(event.step);
    else if (node.step.fingerprint !== event.data.fingerprint) changed.add(node);
    else if (changed.size > 0) changed.delete(node);
  }
  return { changed: [...changed], removed: [...removed] };
}
