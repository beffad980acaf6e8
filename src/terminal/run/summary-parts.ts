import { posix } from 'node:path';
import { formatDuration } from '../../core/index.ts';
import { resolveRecorded } from '../../engine/index.ts';
import {
  costText,
  firstLine,
  type RunView,
  type StatusWord,
  type StepProgress,
  safeLine,
} from '../../view/index.ts';
import { type Glyphs, statusColour } from '../glyphs.ts';
import { type Cell, count, type Paint, tableLines } from '../text.ts';
import { changesText, isSelected, noteOf, shellWord } from '../words.ts';

interface StepTableOptions {
  readonly glyphs: Glyphs;
  readonly paint: Paint;
  readonly width: number;
  /** Whether the process of the run died. */
  readonly interrupted: boolean;
}

/** Largest number of steps that are all shown. */
const allUpTo = 16;
const shownOfMany = 10;
/** Statuses that need attention, most important first. */
const byInterest: readonly StatusWord[] = ['failed', 'waiting', 'cancelled', 'retrying', 'running'];

/** One line per step. A large run shows the steps that need attention and counts the rest. */
export function stepTable(view: RunView, options: StepTableOptions): readonly string[] {
  const all = view.steps.length <= allUpTo;
  const shown = all ? view.steps : interesting(view);
  const nameOf = (step: StepProgress) =>
    all && step.parent ? `${'  '.repeat(step.depth)}${safeLine(step.name)}` : safeLine(step.path);
  const noteFor = (step: StepProgress) =>
    options.interrupted && step.status === 'running' ? 'was running' : noteOf(step, view);
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
  // The time until an approval was answered is not part of the work.
  const isApproval = step.answer !== undefined;
  return [
    { text: look.glyph, colour: statusColour(step.status) },
    { text: look.name },
    { text: took === undefined || isApproval ? '' : formatDuration(took), colour: 'dim' },
    { text: look.cost, colour: 'dim' },
    { text: step.attempt > 1 ? count(step.attempt, 'attempt') : '', colour: 'yellow' },
    { text: look.note, colour: step.status === 'failed' ? 'red' : 'dim' },
  ];
}

/** Steps that need attention. Only leaves count, so that a failure inside a child workflow is listed once. */
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

const done: ReadonlySet<string> = new Set(['landed', 'nothing-to-land']);

/** Whether the step has commits on its own branch. */
export const hasWork = ({ work }: StepProgress): boolean => (work.workspace?.saved?.commits ?? 0) > 0;

/**
 * Steps and copies with finished work that the run has not landed. Leaves out copies that were not selected, and work that
 * a later step builds on.
 */
export function landable(view: RunView): readonly StepProgress[] {
  const landed = new Set(
    view.steps.flatMap(({ work }) =>
      work.landings.filter(({ outcome }) => done.has(outcome)).map(({ branch }) => branch),
    ),
  );
  const bases = new Set(
    view.steps.flatMap(step =>
      step.status === 'completed' && hasWork(step) ? [step.work.workspace?.base] : [],
    ),
  );
  return view.steps.filter(step => {
    const { workspace } = step.work;
    return (
      step.status === 'completed' &&
      hasWork(step) &&
      !lost(step) &&
      !landed.has(workspace?.branch ?? '') &&
      !bases.has(workspace?.saved?.commit)
    );
  });
}

/** Whether another copy was selected. */
function lost({ path, parent }: StepProgress): boolean {
  const winner = parent?.work.selection?.winner;
  return winner !== undefined && path !== `${parent?.path}:${winner}`;
}

interface WorkBlockOptions {
  readonly glyphs: Glyphs;
  readonly paint: Paint;
  /** Root of the project, relative to the current folder. */
  readonly root?: string | undefined;
  /** State folder, relative to the current folder. */
  readonly stateDir?: string | undefined;
  /** Whether a folder, relative to the root of the project, still exists. Defaults to true. */
  readonly isThere?: ((path: string) => boolean) | undefined;
}

/** Results of agents and scripts: branches, artifacts, sessions to continue, and denied tools. */
export function workBlocks(view: RunView, options: WorkBlockOptions): readonly (readonly string[])[] {
  return [
    branchLines(view, options),
    artifactLines(view, options),
    sessionLines(view, options),
    reworkLines(view, options),
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
  return lost(step) ? 'not selected' : '';
}

const artifactLines = (view: RunView, options: WorkBlockOptions): readonly string[] =>
  block(
    'artifacts:',
    view.steps.flatMap(({ path, work }) => work.artifacts.map(artifact => ({ path, artifact }))),
    options,
    ({ path, artifact }) => [
      { text: safeLine(path) },
      { text: safeLine(artifact.name) },
      { text: safeLine(shownPath(artifact.path, options)) },
    ],
  );

const shownPath = (path: string, { root = '.', stateDir }: WorkBlockOptions): string =>
  stateDir === undefined ? path : resolveRecorded({ root, stateDir }, path);

function sessionLines(view: RunView, options: WorkBlockOptions): readonly string[] {
  const { root = '.', isThere = () => true } = options;
  const steps = selectedFirst(view.steps).filter(({ work }) => isThere(work.workspace?.path ?? '.'));
  const commands = steps.flatMap(step => stepInto(step, root) ?? []);
  if (commands.length === 0) return [];
  const shown = commands.slice(0, shownOfMany);
  return [
    'continue an agent session:',
    ...shown.map(command => `  ${command}`),
    ...moreLine(commands, options),
  ];
}

/** Answers that were not accepted, so that their agents were asked again. */
function reworkLines(view: RunView, options: WorkBlockOptions): readonly string[] {
  const asked = view.steps.flatMap(({ path, work }) =>
    work.checked.flatMap(({ rework, error }) => (rework === undefined ? [] : [{ path, rework, error }])),
  );
  return block('reworked:', asked, options, ({ path, rework, error }) => [
    { text: safeLine(path) },
    { text: `rework ${rework}`, colour: 'yellow' },
    { text: firstLine(error?.message ?? '') },
  ]);
}

/** Denied tools. Each remedy is listed once, however often agents tried. */
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
    // Never truncated, so that it can be copied.
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

const resumeWords: Readonly<Record<string, string>> = { claude: 'claude --resume', codex: 'codex resume' };

/**
 * Command that continues the session of a step by hand: `cd <workspace> && claude --resume <id>`. `undefined` if there is
 * no session, or if its agent cannot resume one. `root` is the path to the root of the project.
 */
export function stepInto({ work }: StepProgress, root: string): string | undefined {
  const { session, workspace } = work;
  const words = session && Object.hasOwn(resumeWords, session.kind) ? resumeWords[session.kind] : undefined;
  if (words === undefined || session?.sessionId === undefined) return undefined;
  const folder = posix.join(root, workspace?.path ?? '.');
  const go = folder === '.' ? '' : `cd ${shellWord(folder)} && `;
  return `${go}${words} ${shellWord(session.sessionId)}`;
}
