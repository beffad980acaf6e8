import { outerUnits } from '../engine/state/graph.ts';
import { StepProgress } from '../report/step-progress.ts';

/** The steps of a run in the stable topological order, with workers and what is inside of them below their step. */
export class StepTree {
  steps: readonly StepProgress[] = [];
  readonly #byPath = new Map<string, StepProgress>();

  get(path: string): StepProgress | undefined {
    return this.#byPath.get(path);
  }

  has(path: string): boolean {
    return this.#byPath.has(path);
  }

  /** The steps as a definition has them; the workers of those that stay are kept. */
  set(paths: readonly string[]): void {
    const workers = new Map<string, string[]>();
    for (const { path } of this.steps) {
      const colon = path.indexOf(':');
      if (colon === -1) continue;
      const step = path.slice(0, colon);
      workers.set(step, [...(workers.get(step) ?? []), path]);
    }
    this.#lay(withoutPatterns(paths.flatMap(path => [path, ...(workers.get(path) ?? [])])));
  }

  /** Adds what is not there yet, each below what it is inside of. */
  add(paths: readonly string[]): void {
    const missing = paths.filter(path => !this.has(path));
    if (missing.length === 0) return;
    const all = this.steps.map(({ path }) => path);
    for (const path of missing) {
      const outer = outerUnits(path).find(each => all.includes(each));
      all.splice(outer === undefined ? all.length : endOf(all, outer), 0, path);
    }
    this.#lay(withoutPatterns(all));
  }

  #lay(paths: readonly string[]): void {
    const before = new Map(this.#byPath);
    this.#byPath.clear();
    for (const path of paths) this.#byPath.set(path, before.get(path) ?? new StepProgress(path));
    this.steps = [...this.#byPath.values()];
    for (const step of this.steps) step.children = [];
    this.steps.forEach((step, index) => {
      step.index = index;
      const outer = outerUnits(step.path).find(path => this.has(path));
      step.parent = outer === undefined ? undefined : this.#byPath.get(outer);
      step.parent?.children.push(step);
    });
  }
}

/** What a definition has inside of a step is only the pattern for its workers, once it has some. */
function withoutPatterns(paths: readonly string[]): readonly string[] {
  const multiplied = new Set(paths.flatMap(path => /^(.*):\d+$/.exec(path)?.[1] ?? []));
  if (multiplied.size === 0) return paths;
  return paths.filter(
    path => ![...path.matchAll(/\//g)].some(({ index }) => multiplied.has(path.slice(0, index))),
  );
}

/** After the last path that is inside of the given one. */
function endOf(paths: readonly string[], outer: string): number {
  const isInside = (path: string | undefined) =>
    path?.startsWith(outer) && (path[outer.length] === '/' || path[outer.length] === ':');
  let at = paths.indexOf(outer) + 1;
  while (isInside(paths[at])) at++;
  return at;
}
