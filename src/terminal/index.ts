import type { Observation } from '../engine/environment.ts';
import type { RunResult } from '../engine/run/result.ts';

export { formatError } from './errors.ts';
export { formatGraph } from './graph.ts';
export { formatMermaid } from './mermaid.ts';
export { formatHistory, formatRunList } from './run/history.ts';
export { createLiveReporter } from './run/live.ts';
export { createPlainReporter } from './run/plain.ts';
export { formatSummary } from './run/summary.ts';

/** Somebody who watches a run and shows it. It never throws for what it is told. */
export interface Reporter {
  observe(observation: Observation): void;
  /** Shows what is left to show and gives the terminal back. `undefined`: the run came to no result. */
  close(result: RunResult | undefined): Promise<void>;
}
