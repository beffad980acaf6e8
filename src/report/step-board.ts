import { StepTree } from '../view/step-board.ts';
import type { StatusWord } from './glyphs.ts';
import { Overlap } from './overlap.ts';
import type { StepProgress } from './step-progress.ts';

/** The steps of a run, with how many of them stand how. */
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

  /** What something is inside of is no longer at work itself. */
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
