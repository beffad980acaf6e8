export type { Reporter } from '../report/reporter.ts';
export { formatRunList } from '../report/run-list.ts';
export { formatError } from './errors.ts';
export { formatGraph } from './graph.ts';
export { formatMermaid } from './mermaid.ts';
export { formatHistory } from './run/history.ts';
export { createLiveReporter } from './run/live.ts';
export { createPlainReporter } from './run/plain.ts';
export { formatSummary } from './run/summary.ts';
