import { count } from '../../report/count.ts';
import { hasWork, lost } from '../../report/landable.ts';
import type { Paint } from '../../report/paint.ts';
import { stepInto } from '../../report/step-into.ts';
import { isSelected } from '../../report/work-note.ts';
import { changesText } from '../../report/work-words.ts';
import type { RunView } from '../../view/run-view.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { StepProgress } from '../../view/step-progress.ts';
import type { Glyphs } from '../glyphs.ts';
import { type Cell, tableLines } from '../table.ts';

export interface WorkBlockOptions {
  readonly glyphs: Glyphs;
  readonly paint: Paint;
  /** The root of the project, as somebody in the current folder would type it. */
  readonly root?: string | undefined;
  /** Whether a folder of the project, relative to its root, is still there; all are by default. */
  readonly isThere?: ((path: string) => boolean) | undefined;
}

const shownOfMany = 10;

/** What agents and scripts left behind: branches, files, sessions to step into, and what they were not allowed to do. */
export function workBlocks(view: RunView, options: WorkBlockOptions): readonly (readonly string[])[] {
  return [
    branchLines(view, options),
    artifactLines(view, options),
    sessionLines(view, options),
    denialLines(view, options),
  ];
}

function branchLines(view: RunView, options: WorkBlockOptions): readonly string[] {
  const steps = selectedFirst(view.steps.filter(hasWork));
  return block('branches:', steps, options, step => {
    const { workspace } = step.work;
    const saved = workspace?.saved;
    return [
      { text: safeLine(step.path) },
      { text: fateOf(step), colour: isSelected(step) ? 'green' : 'dim' },
      { text: saved ? `${count(saved.commits, 'commit')}, ${changesText(saved)}` : '', colour: 'dim' },
      { text: safeLine(workspace?.branch ?? '') },
    ];
  });
}

function fateOf(step: StepProgress): string {
  if (isSelected(step)) return 'selected';
  return lost(step) ? 'parked' : '';
}

const artifactLines = (view: RunView, options: WorkBlockOptions): readonly string[] =>
  block(
    'artifacts:',
    view.steps.flatMap(({ path, work }) => work.artifacts.map(artifact => ({ path, artifact }))),
    options,
    ({ path, artifact }) => [
      { text: safeLine(path) },
      { text: safeLine(artifact.name) },
      { text: safeLine(artifact.path) },
    ],
  );

function sessionLines(view: RunView, options: WorkBlockOptions): readonly string[] {
  const { root = '.', isThere = () => true } = options;
  const steps = selectedFirst(view.steps).filter(({ work }) => isThere(work.workspace?.path ?? '.'));
  const commands = steps.flatMap(step => stepInto(step, root) ?? []);
  if (commands.length === 0) return [];
  const shown = commands.slice(0, shownOfMany);
  return ['step into a session:', ...shown.map(command => `  ${command}`), ...moreLine(commands, options)];
}

/** Each line once, however often agents tried. */
function denialLines(view: RunView, options: WorkBlockOptions): readonly string[] {
  const denied = new Map<string, { readonly tool: string; readonly units: Set<string> }>();
  for (const { path, work } of view.steps) {
    for (const { tool, message, lineToAdd } of work.denials) {
      const agent = work.session?.agent ?? 'its agent';
      const remedy = lineToAdd ? `to allow it, add to the agent ${agent}: ${lineToAdd}` : message;
      const known = denied.get(remedy) ?? { tool, units: new Set() };
      denied.set(remedy, known);
      known.units.add(path);
    }
  }
  return block('denied:', [...denied], options, ([remedy, { tool, units }]) => [
    { text: safeLine([...units].join(', ')) },
    { text: safeLine(tool), colour: 'yellow' },
    { text: safeLine(remedy) },
  ]);
}

const selectedFirst = (steps: readonly StepProgress[]): readonly StepProgress[] =>
  steps.toSorted((a, b) => Number(lost(a)) - Number(lost(b)) || a.index - b.index);

function block<T>(
  title: string,
  items: readonly T[],
  options: WorkBlockOptions,
  cellsOf: (item: T) => readonly Cell[],
): readonly string[] {
  if (items.length === 0) return [];
  const rows = items.slice(0, shownOfMany).map(cellsOf);
  const lines = tableLines(rows, {
    columns: (rows[0] ?? []).map(() => ({})),
    // What is to be copied is never cut.
    width: Number.POSITIVE_INFINITY,
    paint: options.paint,
    ellipsis: options.glyphs.ellipsis,
    indent: '  ',
  });
  return [title, ...lines, ...moreLine(items, options)];
}

function moreLine(items: readonly unknown[], { paint, glyphs }: Pick<WorkBlockOptions, 'paint' | 'glyphs'>) {
  const more = items.length - shownOfMany;
  return more > 0 ? [`  ${paint('dim', `${glyphs.ellipsis} and ${more} more`)}`] : [];
}
