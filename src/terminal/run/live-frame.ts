import { formatDuration } from '../../core/index.ts';
import {
  costText,
  type RunView,
  type StatusWord,
  type StepProgress,
  safeLine,
  shortSpending,
} from '../../view/index.ts';
import { type Glyphs, statusColour } from '../glyphs.ts';
import { type Cell, count, displayWidth, type Paint, tableLines, truncate } from '../text.ts';
import { attemptText, itemText, noteOf } from '../words.ts';

export interface FrameOptions {
  readonly workflow: string;
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  /** Number of the frame, which turns the spinner. */
  readonly tick: number;
  readonly glyphs: Glyphs;
  readonly paint: Paint;
  /** Maximum number of attempts of a step, including the first. */
  readonly attemptLimit: (path: string) => number | undefined;
}

/**
 * Draws one frame of a run, narrower than the terminal and at least one row shorter. Active steps take precedence over
 * ended ones, and steps that do not fit are counted.
 */
export function frameLines(view: RunView, options: FrameOptions): readonly string[] {
  const height = Math.max(1, options.rows - 1);
  const header = headerLines(view, options).slice(0, height >= 4 ? 2 : 1);
  const room = height - header.length;
  const active = [...view.active];
  const needsFooter = view.counts.pending > 0 || active.length > room;
  const body = Math.max(0, room - (needsFooter ? 1 : 0));
  const shown = mostUrgent(active, body);
  const ended = lastEnded(view, body - shown.length);
  const rows = [...ended.map(step => endedRow(step, view, options)), ...activeRows(shown, view, options)];
  const lines = tableLines(rows, {
    columns: [{}, { shrinks: true }, { align: 'right' }, { align: 'right' }, {}],
    width: options.columns - 1,
    paint: options.paint,
    ellipsis: options.glyphs.ellipsis,
    indent: ' ',
  });
  const hidden = leavesOf(active) - leavesOf(shown);
  const footer =
    room > 0 && (hidden > 0 || view.counts.pending > 0) ? [footerLine(hidden, view, options)] : [];
  return [...header, ...lines, ...footer];
}

/** Number of steps without children. A parent is not counted in addition to its children. */
const leavesOf = (steps: readonly StepProgress[]): number =>
  steps.filter(({ children }) => children.length === 0).length;

function headerLines(view: RunView, options: FrameOptions): readonly string[] {
  const { glyphs, paint, columns } = options;
  const { dot, ellipsis } = glyphs;
  const name = safeLine(view.workflow ?? options.workflow);
  const state = view.cancelling === undefined ? '' : ` ${dot} cancelling: ${safeLine(view.cancelling)}`;
  const run = view.runId === undefined ? '' : ` ${dot} run ${view.runId}`;
  const cost = costText(view.spent);
  const spent = cost === '' ? '' : ` ${dot} ${cost}`;
  const rest = `${run} ${dot} ${formatDuration(view.elapsedMs(options.now))}${spent}${state}`;
  const nameShown = truncate(name, Math.max(8, columns - 1 - displayWidth(rest)), ellipsis);
  const restShown = truncate(rest, Math.max(0, columns - 1 - displayWidth(nameShown)), ellipsis);
  return [`${paint('bold', nameShown)}${paint('dim', restShown)}`, countsLine(view, options)];
}

const countWords: readonly (readonly [StatusWord, string])[] = [
  ['completed', 'done'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
  ['skipped', 'skipped'],
  ['running', 'running'],
  ['retrying', 'retrying'],
  ['waiting', 'waiting'],
  ['pending', 'pending'],
];

/** Counts by status, with words if they fit. */
function countsLine({ counts }: RunView, { glyphs, paint, columns }: FrameOptions): string {
  const present = countWords.filter(([status]) => counts[status] > 0);
  const join = (text: (status: StatusWord, word: string) => string, gap: string) => ({
    width: displayWidth(present.map(([status, word]) => text(status, word)).join(gap)) + 1,
    painted: ` ${present.map(([status, word]) => paint(statusColour(status), text(status, word))).join(gap)}`,
  });
  const long = join((status, word) => `${glyphs[status]} ${counts[status]} ${word}`, '  ');
  if (long.width < columns) return long.painted;
  const short = join(status => `${glyphs[status]}${counts[status]}`, ' ');
  return short.width < columns ? short.painted : '';
}

/** Rank of an active step: approvals first, then running, retrying and waiting steps, then parents. */
function urgency({ status, waits, children }: StepProgress): number {
  if (children.length > 0) return 4;
  if (status === 'running') return 1;
  if (status === 'retrying') return 2;
  return waits.some(({ on }) => on === 'approval') ? 0 : 3;
}

function mostUrgent(active: readonly StepProgress[], room: number): readonly StepProgress[] {
  const ranked = active.toSorted((a, b) => urgency(a) - urgency(b) || a.index - b.index);
  return ranked.slice(0, Math.max(0, room)).sort((a, b) => a.index - b.index);
}

/** The last steps that ended, oldest first. Failed steps take precedence, and steps that were restarted are left out. */
function lastEnded(view: RunView, room: number): readonly StepProgress[] {
  if (room <= 0) return [];
  const chosen = new Set([...view.failed].slice(-room));
  for (let at = view.endings.length - 1; at >= 0 && chosen.size < room; at--) {
    const step = view.endings[at];
    if (step && (step.status === 'completed' || step.status === 'cancelled')) chosen.add(step);
  }
  return [...chosen].sort((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0) || a.index - b.index);
}

function endedRow(step: StepProgress, view: RunView, { glyphs }: FrameOptions): readonly Cell[] {
  const took = step.answer ? undefined : step.durationMs(undefined);
  return [
    { text: glyphs[step.status], colour: statusColour(step.status) },
    { text: safeLine(step.path), colour: 'dim' },
    { text: took === undefined ? '' : formatDuration(took), colour: 'dim' },
    { text: shortSpending(step.spent), colour: 'dim' },
    { text: noteOf(step, view) || itemText(step.item), colour: step.status === 'failed' ? 'red' : 'dim' },
  ];
}

function activeRows(
  steps: readonly StepProgress[],
  view: RunView,
  options: FrameOptions,
): readonly (readonly Cell[])[] {
  const { glyphs, tick, now } = options;
  const shown = new Set(steps);
  const spinner = glyphs.spinner[tick % glyphs.spinner.length] ?? glyphs.running;
  return steps.map(step => {
    const inside = step.parent !== undefined && shown.has(step.parent);
    const took = step.durationMs(now);
    return [
      { text: step.status === 'running' ? spinner : glyphs[step.status], colour: statusColour(step.status) },
      { text: inside ? `${'  '.repeat(step.depth)}${safeLine(step.name)}` : safeLine(step.path) },
      { text: took === undefined ? '' : formatDuration(took) },
      { text: shortSpending(step.spent), colour: 'dim' },
      { text: activeNote(step, view, options), colour: step.status === 'running' ? 'dim' : 'yellow' },
    ];
  });
}

function activeNote(step: StepProgress, view: RunView, { now, attemptLimit, glyphs }: FrameOptions): string {
  if (step.status !== 'running') return noteOf(step, view, now);
  const attempt = step.attempt > 1 ? [attemptText(step.attempt, attemptLimit(step.path))] : [];
  const latest = step.work.lastAction ?? (step.lastLine === undefined ? undefined : safeLine(step.lastLine));
  const item = itemText(step.item);
  const parts = [...attempt, ...(step.fanOut ? [copiesText(step)] : []), item, latest ?? ''];
  return parts.filter(part => part !== '').join(` ${glyphs.dot} `);
}

function copiesText({ children }: StepProgress): string {
  const ended = children.filter(({ hasEnded }) => hasEnded).length;
  return `${ended} of ${count(children.length, 'copy', 'copies')} done`;
}

function footerLine(hidden: number, view: RunView, { glyphs, paint, columns }: FrameOptions): string {
  const parts = [
    ...(hidden > 0 ? [`${hidden} more active`] : []),
    ...(view.counts.pending > 0 ? [`${view.counts.pending} more pending`] : []),
  ];
  return ` ${paint('dim', truncate(`${glyphs.ellipsis} ${parts.join(', ')}`, columns - 2, glyphs.ellipsis))}`;
}
