export { formatError } from './error-text.ts';
export { formatGraph } from './graph-text.ts';
export { formatHistory } from './history-table.ts';
export { createLiveReporter } from './live-reporter.ts';
export { formatMermaid } from './mermaid.ts';
export { createPlainReporter } from './plain-reporter.ts';
export type { Reporter } from './reporter.ts';
export { formatRunList } from './run-list.ts';
export { formatSummary } from './summary.ts';
