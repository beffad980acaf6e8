/** Where a step works, once that is known. */
export interface Placed {
  readonly work: 'none' | 'readonly' | 'worktree';
  readonly fanOut: 'none' | 'selected' | 'all';
  /** The step whose work it goes on with. */
  readonly continues: string | undefined;
}

/** The work that can be gone on with, seen from after a step. */
export interface Reach {
  readonly found: ReadonlySet<string>;
  /** Fan-outs that left several works, which lie on the way. */
  readonly passed: ReadonlySet<string>;
}

const nothing: Reach = { found: new Set(), passed: new Set() };

/** What can be seen from a step that comes after these. */
export function reachOf(needs: readonly (Reach | undefined)[]): Reach {
  const [first = nothing, ...others] = needs.filter(reach => reach !== undefined);
  // Long chains and wide graphs without any work share one object.
  if (others.every(reach => reach === first)) return first;
  return {
    found: new Set([...first.found, ...others.flatMap(({ found }) => [...found])]),
    passed: new Set([...first.passed, ...others.flatMap(({ passed }) => [...passed])]),
  };
}

/** What can be seen from after a step, which itself sees `before`. */
export function throughStep(id: string, placed: Placed, before: Reach): Reach {
  if (canContinueFrom(placed)) return { found: new Set([id]), passed: nothing.passed };
  if (placed.work !== 'worktree') return before;
  return { found: before.found, passed: new Set([...before.passed, id]) };
}

/** A single work is left, in which something may have changed. */
export const canContinueFrom = (placed: Placed | undefined): boolean =>
  placed?.work === 'worktree' && placed.fanOut !== 'all';

/** The one work that holds all others that were found; `undefined` if there is none. */
export function singleOf({ found }: Reach, placed: ReadonlyMap<string, Placed>): string | undefined {
  if (found.size <= 1) return [...found][0];
  const contained = new Set<string>();
  for (const id of found) {
    for (let inner = placed.get(id)?.continues; inner !== undefined; inner = placed.get(inner)?.continues) {
      if (contained.has(inner)) break;
      contained.add(inner);
    }
  }
  const outermost = [...found].filter(id => !contained.has(id));
  return outermost.length === 1 ? outermost[0] : undefined;
}
