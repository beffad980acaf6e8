import type { Observation, RunResult } from '../engine/index.ts';

/** Shows a run while it is observed. `observe` never throws. */
export interface RunReporter {
  observe(observation: Observation): void;
  /** Shows what is left and restores the terminal. `undefined`: the run has no result. */
  close(result: RunResult | undefined): Promise<void>;
}
