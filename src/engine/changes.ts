import type { HistoryEvent } from '../core/events.ts';
import type { Graph } from './state/graph.ts';
import { definitionPath, unitOfEvent } from './unit.ts';

/** What differs between a definition and the one that a history was made with. */
export interface DefinitionChanges {
  /** Units that ran, or were skipped, and are defined otherwise now. */
  readonly changed: readonly string[];
  /** Units that ran and no longer exist. */
  readonly removed: readonly string[];
}

/** Steps that never ran may change freely: nothing depends on what they were. The last start of a step counts. */
export function findChanges(graph: Graph, history: readonly HistoryEvent[]): DefinitionChanges {
  const changed = new Set<string>();
  const removed = new Set<string>();
  for (const event of history) {
    if (event.type !== 'step.started' && event.type !== 'step.skipped') continue;
    const unit = unitOfEvent(event);
    if (unit === undefined) continue;
    const node = graph.byPath.get(definitionPath(unit));
    if (!node) removed.add(unit);
    else if (node.step.fingerprint !== event.data.fingerprint) changed.add(unit);
    else if (changed.size > 0) changed.delete(unit);
  }
  return { changed: [...changed], removed: [...removed] };
}
