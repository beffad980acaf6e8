import type { HistoryEvent } from '../core/event.ts';
import type { Graph, GraphNode } from './graph.ts';

/** What differs between a definition and the one that a history was made with. */
export interface DefinitionChanges {
  /** Steps that ran, or were skipped, and are defined otherwise now. */
  readonly changed: readonly GraphNode[];
  /** Paths of steps that ran and no longer exist. */
  readonly removed: readonly string[];
}

/** Steps that never ran may change freely: nothing depends on what they were. */
export function findChanges(graph: Graph, history: readonly HistoryEvent[]): DefinitionChanges {
  const fingerprints = new Map<string, string>();
  for (const event of history) {
    if (event.step === undefined) continue;
    if (event.type === 'step.started' || event.type === 'step.skipped')
      fingerprints.set(event.step, event.data.fingerprint);
  }
  const changed: GraphNode[] = [];
  const removed: string[] = [];
  for (const [path, fingerprint] of fingerprints) {
    const node = graph.byPath.get(path);
    if (!node) removed.push(path);
    else if (node.step.fingerprint !== fingerprint) changed.push(node);
  }
  return { changed, removed };
}
