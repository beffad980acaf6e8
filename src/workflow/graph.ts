import { nearest } from '../core/suggest.ts';
import { type DagNode, topologicalOrder } from './dag.ts';

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
