import { formatDuration } from '../core/time.ts';
import { type Glyphs, statusColour } from '../terminal/glyphs.ts';
import { type Cell, tableLines } from '../terminal/table.ts';
import { noteOf } from '../terminal/words.ts';
import { costText } from '../view/cost.ts';
import type { RunView } from '../view/run-view.ts';
import { safeLine } from '../view/safe-text.ts';
import type { StatusWord } from '../view/step-board.ts';
import type { StepProgress } from '../view/step-progress.ts';
import { count } from './count.ts';
import type { Paint } from './paint.ts';

export interface StepTableOptions {
  readonly glyphs: Glyphs;
  readonly paint: Paint;
  readonly width: number;
  /** Nobody works on the run any more. */
  readonly interrupted: boolean;
}

const allUpTo = 16;
const shownOfMany = 10;
/** What a person looks for first in a large run. */
const byInterest: readonly StatusWord[] = ['failed', 'waiting', 'cancelled', 'retrying', 'running'];

/** A line for each step; of a large run, the ones that need attention and a count of the rest. */
export function stepTable(view: RunView, options: StepTableOptions): readonly string[] {
  const all = view.steps.length <= allUpTo;
  const shown = all ? view.steps : interesting(view);
  const nameOf = (step: StepProgress) =>
    all && step.parent ? `${'  '.repeat(step.depth)}${safeLine(step.name)}` : safeLine(step.path);
  const noteFor = (step: StepProgress) =>
    options.interrupted && step.status === 'running' ? 'was at work' : noteOf(step, view);
  const isPriced = view.spent.priced > 0;
  const costOf = ({ spent }: StepProgress) => {
    if (spent.priced > 0) return costText(spent);
    return isPriced && spent.sessions > 0 ? 'unknown' : '';
  };
  const lines = tableLines(
    shown.map(step =>
      stepRow(step, {
        name: nameOf(step),
        glyph: options.glyphs[step.status],
        cost: costOf(step),
        note: noteFor(step),
      }),
    ),
    {
      columns: [{}, { shrinks: true }, { align: 'right' }, { align: 'right' }, {}, {}],
      width: options.width,
      paint: options.paint,
      ellipsis: options.glyphs.ellipsis,
      indent: '  ',
    },
  );
  const rest = restText(view, new Set(shown));
  return rest === '' ? lines : [...lines, `  ${options.paint('dim', `${options.glyphs.ellipsis} ${rest}`)}`];
}

function stepRow(
  step: StepProgress,
  look: { readonly name: string; readonly glyph: string; readonly cost: string; readonly note: string },
): readonly Cell[] {
  const took = step.durationMs(undefined);
  // How long somebody thought about an answer says nothing about the run.
  const isGate = step.answer !== undefined;
  return [
    { text: look.glyph, colour: statusColour(step.status) },
    { text: look.name },
    { text: took === undefined || isGate ? '' : formatDuration(took), colour: 'dim' },
    { text: look.cost, colour: 'dim' },
    { text: step.attempt > 1 ? count(step.attempt, 'attempt') : '', colour: 'yellow' },
    { text: look.note, colour: step.status === 'failed' ? 'red' : 'dim' },
  ];
}

/** Leaves only, so that a failure inside a child workflow is listed once. */
function interesting(view: RunView): readonly StepProgress[] {
  const leaves = view.steps.filter(step => step.children.length === 0);
  return byInterest.flatMap(status => leaves.filter(step => step.status === status)).slice(0, shownOfMany);
}

function restText(view: RunView, shown: ReadonlySet<StepProgress>): string {
  const counts = new Map<StatusWord, number>();
  for (const step of view.steps) {
    if (shown.has(step) || step.children.length > 0) continue;
    counts.set(step.status, (counts.get(step.status) ?? 0) + 1);
  }
  const order: readonly StatusWord[] = [...byInterest, 'completed', 'skipped', 'pending'];
  return order.flatMap(status => (counts.has(status) ? [`${counts.get(status)} ${status}`] : [])).join(', ');
}
