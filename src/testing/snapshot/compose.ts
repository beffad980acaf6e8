import { timelineLines } from '../../cases/snapshot/timeline.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import { tableLines } from '../../terminal/table.ts';
import { safeLine } from '../../view/safe-text.ts';
import { outputLines } from './output-lines.ts';

export interface SnapshotStep {
  readonly name: string;
  /** All that it wrote, as it wrote it. */
  readonly output: string;
  readonly exitCode: number | null;
  /** Ended by the case itself, before it had an exit code. */
  readonly killed?: boolean | undefined;
}

/** What is there after the last step. */
export interface SnapshotResult {
  /** Subjects of the commits on main, oldest first. */
  readonly main: readonly string[];
  readonly tasks?: readonly { readonly name: string; readonly status: string }[] | undefined;
  /** Left over, besides the checkout itself. */
  readonly worktrees: readonly string[];
  /** Left over, besides main. */
  readonly branches: readonly string[];
}

export interface SnapshotParts {
  /** In the order of the case file. */
  readonly steps: readonly SnapshotStep[];
  /** Absent if nothing was done to the repository: then there is nothing to see in it. */
  readonly result?: SnapshotResult | undefined;
  /** The entries as they are on the tapes, in their order; without them there is no timeline. */
  readonly timeline?: readonly RecordedEntry[] | undefined;
}

/** What a case came to, as one text: a section for each step, the result, and the timeline if it is asked for. */
export function composeSnapshot({ steps, result, timeline }: SnapshotParts): string {
  const sections = [
    ...steps.map(step => section(step.name, [...outputLines(step.output), ...endLines(step)])),
    ...(result ? [section('result', resultLines(result))] : []),
    ...(timeline ? [section('timeline', timelineLines(timeline))] : []),
  ];
  return `${sections.join('\n\n')}\n`;
}

const section = (name: string, lines: readonly string[]): string =>
  [`--- ${safeLine(name)} ---`, ...lines].join('\n');

function endLines({ exitCode, killed }: SnapshotStep): readonly string[] {
  if (killed) return ['killed'];
  return exitCode === 0 ? [] : [exitCode === null ? 'no exit code' : `exit ${exitCode}`];
}

function resultLines({ main, tasks = [], worktrees, branches }: SnapshotResult): readonly string[] {
  return [
    ...listLines('main', main.map(safeLine)),
    ...(tasks.length === 0 ? [] : ['tasks:', ...taskLines(tasks)]),
    ...listLines('worktrees left', worktrees.map(safeLine)),
    ...listLines('branches left', branches.map(safeLine)),
  ];
}

const listLines = (title: string, items: readonly string[]): readonly string[] =>
  items.length === 0 ? [`${title}: none`] : [`${title}:`, ...items.map(item => `  ${item}`.trimEnd())];

const taskLines = (tasks: NonNullable<SnapshotResult['tasks']>): readonly string[] =>
  tableLines(
    tasks.map(({ name, status }) => [{ text: safeLine(name) }, { text: safeLine(status) }]),
    {
      columns: [{}, {}],
      width: Number.POSITIVE_INFINITY,
      paint: (_, text) => text,
      ellipsis: '…',
      indent: '  ',
    },
  );
