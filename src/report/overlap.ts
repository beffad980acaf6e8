import type { StepProgress } from './step-progress.ts';

/** Counts how many steps are at work at the same time, and how long in all. */
export class Overlap {
  /** Time at work, summed over all steps. */
  workedMs = 0;
  #most = 0;
  #atWork = 0;

  /** How many steps were at work at once, at most. */
  get most(): number {
    return Math.max(this.#most, this.#atWork);
  }

  /** Lets the number of steps that are at work now count. */
  take(): void {
    this.#most = this.most;
  }

  /** What was counted so far was not work of this run. */
  forget(): void {
    this.#most = 0;
  }

  start(step: StepProgress, at: number): void {
    step.workingSince = at;
    this.#atWork++;
  }

  /** Does nothing if the step is not at work. */
  stop(step: StepProgress, at: number): void {
    if (step.workingSince === undefined) return;
    const ms = Math.max(0, at - step.workingSince);
    step.workingSince = undefined;
    step.workedMs += ms;
    this.workedMs += ms;
    this.#atWork--;
  }
}
