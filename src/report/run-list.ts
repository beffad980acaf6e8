import { formatDuration, type Timestamp, toEpochMs } from '../core/time.ts';
import { glyphsFor, statusColour, toStatusWord } from '../terminal/glyphs.ts';
import type { FormatOptions } from '../terminal/run/history.ts';
import { tableLines } from '../terminal/table.ts';
import { safeLine } from '../view/safe-text.ts';
import { relativeTime } from './moments.ts';
import { painter } from './paint.ts';

export interface RunRow {
  readonly runId: string;
  readonly workflow: string;
  readonly status: string;
  readonly startedAt: Timestamp;
  readonly endedAt: Timestamp | null;
}

/** Runs in the order given: id, workflow, status, when it started and how long it took. */
export function formatRunList(
  rows: readonly RunRow[],
  options: FormatOptions & { readonly now: number },
): string {
  const glyphs = glyphsFor(options.unicode);
  const lines = tableLines(
    rows.map(({ runId, workflow, status, startedAt, endedAt }) => {
      const word = toStatusWord(status);
      const started = toEpochMs(startedAt);
      return [
        { text: glyphs[word], colour: statusColour(word) },
        { text: safeLine(runId) },
        { text: safeLine(workflow) },
        { text: safeLine(status), colour: statusColour(word) },
        { text: relativeTime(started, options.now), colour: 'dim' as const },
        {
          text: endedAt === null ? '' : `took ${formatDuration(toEpochMs(endedAt) - started)}`,
          colour: 'dim' as const,
        },
      ];
    }),
    {
      columns: [{}, {}, { shrinks: true }, {}, {}, {}],
      width: options.columns,
      paint: painter(options.color),
      ellipsis: glyphs.ellipsis,
    },
  );
  return lines.map(line => `${line}\n`).join('');
}
