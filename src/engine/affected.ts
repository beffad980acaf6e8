import type { Graph } from './state/graph.ts';
import { definitionPath, outerUnits, siblingUnit } from './unit.ts';

/**
 * What has to run again when the given units do: they, what is inside them and what comes after them. What they are
 * inside of is opened again, without the rest of what is inside, and what comes after that runs again too.
 * `known`: the units that history tells of.
 */
export function affectedBy(
  graph: Graph,
  roots: Iterable<string>,
  known: ReadonlySet<string>,
): ReadonlySet<string> {
  const whole = new Set<string>();
  const reopened = new Set<string>();
  const queue = [...roots];
  for (let unit = queue.pop(); unit !== undefined; unit = queue.pop()) {
    if (whole.has(unit)) continue;
    whole.add(unit);
    queue.push(...dependantsOf(graph, unit));
    for (const outer of outerUnits(unit)) {
      if (reopened.has(outer)) break;
      reopened.add(outer);
      queue.push(...dependantsOf(graph, outer));
    }
  }
  for (const unit of known) if (outerUnits(unit).some(outer => whole.has(outer))) whole.add(unit);
  return new Set([...whole, ...reopened]);
}

/** Nothing comes after a single worker: what does comes after all of them. */
function dependantsOf(graph: Graph, unit: string): readonly string[] {
  if (/:\d+$/.test(unit)) return [];
  const dependants = graph.byPath.get(definitionPath(unit))?.dependants ?? [];
  return dependants.map(({ step }) => siblingUnit(unit, step.id));
}
