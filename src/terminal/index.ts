export { formatError, hintLines } from './errors.ts';
export { type Glyphs, glyphsFor, isUtf8Locale } from './glyphs.ts';
export { formatGraph, type LaneRow, laneDiagram } from './graph.ts';
export { formatMermaid } from './mermaid.ts';
export { formatHistory, formatRunList } from './run/history.ts';
export { createLiveReporter } from './run/live.ts';
export { createPlainReporter, type RunReporter } from './run/plain.ts';
export { formatSummary } from './run/summary.ts';
export { hasWork, landable } from './run/summary-parts.ts';
export {
  type Colour,
  count,
  displayWidth,
  filled,
  filledBefore,
  jsonText,
  type Paint,
  painter,
  tableLines,
  truncate,
} from './text.ts';
export { shellWord } from './words.ts';
export { observationLines, type WorkersReporter } from './worker/reporter.ts';
