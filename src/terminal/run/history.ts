import type { HistoryEvent } from '../../core/events.ts';
import { toEpochMs } from '../../core/time.ts';
import { unitOfEvent } from '../../engine/state/graph.ts';
import { eventNote } from '../../report/event-note.ts';
import { calendarDay, preciseTime } from '../../report/moments.ts';
import { painter } from '../../report/paint.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { StatusWord } from '../../view/step-board.ts';
import { glyphsFor, statusColour, toStatusWord } from '../glyphs.ts';
import { type Cell, tableLines } from '../table.ts';

export interface FormatOptions {
  readonly color: boolean;
  readonly columns: number;
  readonly unicode?: boolean | undefined;
}

/** A history, one line for each event: number, time, type, step, attempt (`#2`) and what it says. */
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

/** What goes on inside of a step: less telling than how it fares. */
const workSubjects: ReadonlySet<string> = new Set(['workspace', 'session', 'landing', 'fanout']);
