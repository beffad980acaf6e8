import { outerUnits } from '../engine/state/index.ts';
import { StepProgress } from './step-progress.ts';

/** Status of a step or a run in the views. */
export type StatusWord =
  | 'pending'
  | 'running'
  | 'waiting'
  | 'retrying'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'skipped';

/** Steps of a run in the stable topological order. Copies and child steps follow their parent. */
export class StepTree {
  steps: readonly StepProgress[] = [];
  readonly #byPath = new Map<string, StepProgress>();

  get(path: string): StepProgress | undefined {
    return this.#byPath.get(path);
  }

  has(path: string): boolean {
    return this.#byPath.has(path);
  }

  /** Sets the steps of a definition. Copies of steps that remain are kept. */
  set(paths: readonly string[]): void {
    const copies = new Map<string, string[]>();
    for (const { path } of this.steps) {
      const colon = path.indexOf(':');
      if (colon === -1) continue;
      const step = path.slice(0, colon);
      copies.set(step, [...(copies.get(step) ?? []), path]);
    }
    this.#replace(withoutPatterns(paths.flatMap(path => [path, ...(copies.get(path) ?? [])])));
  }

  /** Adds missing steps, each below its parent. */
  add(paths: readonly string[]): void {
    const missing = paths.filter(path => !this.has(path));
    if (missing.length === 0) return;
    const all = this.steps.map(({ path }) => path);
    for (const path of missing) {
      const outer = outerUnits(path).find(each => all.includes(each));
      all.splice(outer === undefined ? all.length : endOf(all, outer), 0, path);
    }
    this.#replace(withoutPatterns(all));
  }

  #replace(paths: readonly string[]): void {
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

/** Removes the child steps of a step that has copies. They are only the pattern for the child steps of each copy. */
function withoutPatterns(paths: readonly string[]): readonly string[] {
  const multiplied = new Set(paths.flatMap(path => /^(.*):\d+$/.exec(path)?.[1] ?? []));
  if (multiplied.size === 0) return paths;
  return paths.filter(
    path => ![...path.matchAll(/\//g)].some(({ index }) => multiplied.has(path.slice(0, index))),
  );
}

/** Index after the last path inside the given one. */
function endOf(paths: readonly string[], outer: string): number {
  const isInside = (path: string | undefined) =>
    path?.startsWith(outer) && (path[outer.length] === '/' || path[outer.length] === ':');
  let at = paths.indexOf(outer) + 1;
  while (isInside(paths[at])) at++;
  return at;
}

/** Measures how many steps run in parallel, and their total running time. */
export class Overlap {
  /** Running time, summed over all steps. */
  workedMs = 0;
  #most = 0;
  #atWork = 0;

  /** Peak number of steps that ran in parallel. */
  get most(): number {
    return Math.max(this.#most, this.#atWork);
  }

  /** Includes the current number of running steps in the peak. */
  take(): void {
    this.#most = this.most;
  }

  /** Resets the peak, because the steps so far did not run in this run. */
  forget(): void {
    this.#most = 0;
  }

  start(step: StepProgress, at: number): void {
    step.workingSince = at;
    this.#atWork++;
  }

  /** Does nothing if the step is not running. */
  stop(step: StepProgress, at: number): void {
    if (step.workingSince === undefined) return;
    const ms = Math.max(0, at - step.workingSince);
    step.workingSince = undefined;
    step.workedMs += ms;
    this.workedMs += ms;
    this.#atWork--;
  }
}

/** Steps of a run with their counts by status. */
export class StepBoard {
  readonly tree = new StepTree();
  readonly active = new Set<StepProgress>();
  readonly failed = new Set<StepProgress>();
  readonly counts: Record<StatusWord, number> = noCounts();
  readonly overlap = new Overlap();

  set(paths: readonly string[]): void {
    this.tree.set(paths);
    for (const group of [this.active, this.failed]) {
      for (const step of group) if (!this.tree.has(step.path)) group.delete(step);
    }
    this.#count();
  }

  /** Adds steps. A parent that gets children no longer counts as running itself. */
  add(paths: readonly string[], at: number): void {
    this.tree.add(paths);
    for (const path of paths) {
      const parent = this.tree.get(path)?.parent;
      if (parent) this.overlap.stop(parent, at);
    }
    this.#count();
  }

  setStatus(step: StepProgress, status: StatusWord, at: number): void {
    const before = step.status;
    step.status = status;
    if (step.children.length === 0) {
      this.counts[before]--;
      this.counts[status]++;
      if (before === 'running') this.overlap.stop(step, at);
      if (status === 'running') this.overlap.start(step, at);
    }
    if (step.isActive) this.active.add(step);
    else this.active.delete(step);
    if (status === 'failed') this.failed.add(step);
    else this.failed.delete(step);
  }

  #count(): void {
    Object.assign(this.counts, noCounts());
    for (const step of this.tree.steps) if (step.children.length === 0) this.counts[step.status]++;
  }
}

const noCounts = (): Record<StatusWord, number> => ({
  pending: 0,
  running: 0,
  waiting: 0,
  retrying: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  skipped: 0,
});
