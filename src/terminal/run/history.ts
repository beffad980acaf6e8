import { formatDuration, type HistoryEvent, type Timestamp, toEpochMs } from '../../core/index.ts';
import { unitOfEvent } from '../../engine/state/index.ts';
import { type StatusWord, safeLine } from '../../view/index.ts';
import { eventNote } from '../events.ts';
import { glyphsFor, statusColour, toStatusWord } from '../glyphs.ts';
import { type Cell, calendarDay, painter, preciseTime, relativeTime, tableLines } from '../text.ts';

export interface FormatOptions {
  readonly color: boolean;
  readonly columns: number;
  readonly unicode?: boolean | undefined;
}

/** Formats a history, one line per event: number, time, type, step, attempt (`#2`) and a note. */
export function formatHistory(events: readonly HistoryEvent[], options: FormatOptions): string {
  const days = new Set(events.map(({ at }) => calendarDay(toEpochMs(at))));
  const lines = tableLines(
    events.map(event => eventRow(event, days.size > 1)),
    {
      columns: [{ align: 'right' }, {}, {}, { shrinks: true }, {}, {}],
      width: options.columns,
      paint: painter(options.color),
      ellipsis: glyphsFor(options.unicode).ellipsis,
    },
  );
  return lines.map(line => `${line}\n`).join('');
}

function eventRow(event: HistoryEvent, withDay: boolean): readonly Cell[] {
  const at = toEpochMs(event.at);
  return [
    { text: String(event.seq), colour: 'dim' },
    { text: withDay ? `${calendarDay(at)} ${preciseTime(at)}` : preciseTime(at), colour: 'dim' },
    { text: event.type, colour: statusColour(statusOfEvent(event)) },
    { text: safeLine(unitOfEvent(event) ?? '') },
    { text: event.attempt !== undefined && event.attempt > 1 ? `#${event.attempt}` : '', colour: 'yellow' },
    { text: eventNote(event) },
  ];
}

function statusOfEvent({ type, data }: HistoryEvent): StatusWord {
  if (type === 'step.paused') return 'waiting';
  if (type === 'landing.ended')
    return /^(landed|nothing-to-land)$/.test(data.outcome) ? 'completed' : 'failed';
  if (type === 'selection.made') return 'completed';
  const [subject, verb = ''] = type.split('.');
  if (subject === 'run' || subject === 'step')
    return verb === 'started' || verb === 'resumed' ? 'running' : toStatusWord(verb);
  if (subject === 'cancel') return 'cancelled';
  return workSubjects.has(subject ?? '') ? 'pending' : 'waiting';
}

/** Subjects of events inside a step, which are drawn less prominently than its status. */
const workSubjects: ReadonlySet<string> = new Set(['workspace', 'session', 'landing', 'fanout']);

export interface RunListRow {
  readonly runId: string;
  readonly workflow: string;
  readonly status: string;
  readonly startedAt: Timestamp;
  readonly endedAt: Timestamp | null;
  /** Project of the run, if runs of several projects are listed. */
  readonly project?: string | undefined;
}

/** Formats a list of runs: id, workflow, status, start time and duration. */
export function formatRunList(
  rows: readonly RunListRow[],
  options: FormatOptions & { readonly now: number },
): string {
  const glyphs = glyphsFor(options.unicode);
  const lines = tableLines(
    rows.map(({ runId, workflow, status, startedAt, endedAt, project }) => {
      const word = toStatusWord(status);
      const started = toEpochMs(startedAt);
      return [
        { text: glyphs[word], colour: statusColour(word) },
        { text: safeLine(runId) },
        ...(project === undefined ? [] : [{ text: safeLine(project) }]),
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
      columns: [
        {},
        {},
        ...(rows[0]?.project === undefined ? [] : [{ shrinks: true }]),
        { shrinks: true },
        {},
        {},
        {},
      ],
      width: options.columns,
      paint: painter(options.color),
      ellipsis: glyphs.ellipsis,
    },
  );
  return lines.map(line => `${line}\n`).join('');
}
