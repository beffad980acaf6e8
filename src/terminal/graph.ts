import { safeLine } from '../view/index.ts';
import {
  type FanOut,
  type Scope,
  type StepModel,
  topologicalOrder,
  type WorkflowModel,
} from '../workflow/index.ts';
import { type Glyphs, glyphsFor, statusColour, toStatusWord } from './glyphs.ts';
import {
  type Cell,
  count,
  displayWidth,
  filled,
  filledBefore,
  painter,
  tableLines,
  truncate,
  wrapped,
} from './text.ts';

interface GraphOptions {
  readonly color: boolean;
  /** Width of the terminal. Defaults to 80. */
  readonly columns?: number | undefined;
  readonly unicode?: boolean | undefined;
  /** Status of each step, by path. */
  readonly statuses?: ReadonlyMap<string, string> | undefined;
}

/**
 * Draws the graph as numbered layers. Steps in one layer can run in parallel, and an arrow names the dependencies of a step.
 * The steps of a child workflow are listed below the step that uses it.
 */
export function formatGraph(workflow: WorkflowModel, options: GraphOptions): string {
  const glyphs = glyphsFor(options.unicode);
  const paint = painter(options.color);
  const rows = scopeRows(workflow, { indent: '', prefix: '', glyphs, statuses: options.statuses });
  const lines = tableLines(rows, {
    columns: [{}, { shrinks: true }, {}],
    width: options.columns ?? 80,
    paint,
    ellipsis: glyphs.ellipsis,
  });
  const title = `${paint('bold', safeLine(workflow.name))}: ${count(workflow.steps.length, 'step')}`;
  const about = workflow.description ? [paint('dim', safeLine(workflow.description))] : [];
  return `${[title, ...about, ...lines].join('\n')}\n`;
}

interface TextScope {
  readonly indent: string;
  readonly prefix: string;
  readonly glyphs: Glyphs;
  readonly statuses: ReadonlyMap<string, string> | undefined;
}

function scopeRows(workflow: WorkflowModel, scope: TextScope): readonly (readonly Cell[])[] {
  return layersOf(workflow).flatMap((layer, depth) =>
    layer.flatMap((step, index) => stepRows(step, { scope, depth, index, size: layer.length })),
  );
}

/** Puts each step one layer below its deepest dependency. */
function layersOf(workflow: WorkflowModel): readonly (readonly StepModel[])[] {
  const depths = new Map<string, number>();
  const layers: StepModel[][] = [];
  for (const step of inOrder(workflow)) {
    const depth = step.needs.reduce((deepest, { id }) => Math.max(deepest, (depths.get(id) ?? -1) + 1), 0);
    depths.set(step.id, depth);
    const layer = layers[depth];
    if (layer) layer.push(step);
    else layers.push([step]);
  }
  return layers;
}

interface RowPosition {
  readonly scope: TextScope;
  readonly depth: number;
  readonly index: number;
  readonly size: number;
}

function stepRows(step: StepModel, { scope, depth, index, size }: RowPosition): readonly (readonly Cell[])[] {
  const { glyphs, statuses } = scope;
  const { branch } = glyphs;
  const path = `${scope.prefix}${step.id}`;
  const isLast = index === size - 1;
  const number = index === 0 ? String(depth + 1).padStart(2) : '  ';
  const line = branch.only.slice(0, 1);
  const turn = size === 1 ? branch.only : index === 0 ? branch.first : isLast ? branch.last : branch.middle;
  const word = statuses && toStatusWord(statuses.get(path) ?? 'pending');
  const tree = `${scope.indent}${number} ${index === 0 ? line : ' '}${turn} `;
  const row: Cell[] = [
    {
      lead: tree,
      text: `${word ? `${glyphs[word]} ` : ''}${safeLine(step.id)}`,
      colour: word && statusColour(word),
    },
    { text: marksOf(step).join(` ${glyphs.dot} `), colour: 'dim' },
    { text: needsText(step, glyphs) },
  ];
  if (step.body.kind !== 'uses') return [row];
  const indent = `${scope.indent}    ${isLast ? '  ' : branch.through} `;
  return [row, ...scopeRows(step.body.workflow, { ...scope, indent, prefix: `${path}/` })];
}

function marksOf({ body, fanOut, condition, retry, optional }: StepModel): readonly string[] {
  return [
    kindText(body),
    ...(fanOut ? fanOutMarks(fanOut) : []),
    ...(condition ? ['conditional'] : []),
    ...(retry && retry.attempts > 1 ? [`up to ${retry.attempts} attempts`] : []),
    ...(optional ? ['optional'] : []),
  ];
}

function kindText(body: StepModel['body']): string {
  switch (body.kind) {
    case 'function':
      return 'function';
    case 'run':
      return 'shell';
    case 'approve':
      return 'approval';
    case 'uses':
      return `uses ${safeLine(body.workflow.name)}`;
    case 'agent':
      return `agent ${safeLine(body.agent)}`;
    case 'land':
      return `lands ${safeLine(body.from)}`;
    case 'built-in':
      return safeLine(body.name);
  }
}

const namedNeeds = 6;

/** Dependencies of a step. `maybe` marks one whose failure does not keep the step from running. */
function needsText({ needs }: StepModel, glyphs: Glyphs): string {
  if (needs.length === 0) return '';
  const names = needs
    .slice(0, namedNeeds)
    .map(({ id, tolerant }) => `${tolerant ? 'maybe ' : ''}${safeLine(id)}`);
  const more = needs.length > namedNeeds ? ` and ${needs.length - namedNeeds} more` : '';
  return `${needs.length > 1 ? glyphs.join : glyphs.after} ${names.join(', ')}${more}`;
}

/** A step of a workflow or of one of its child workflows. */
export interface StepAtPath {
  readonly path: string;
  readonly step: StepModel;
}

/** All steps in the stable topological order that runs record. Steps of a child workflow follow the step that uses it. */
export function stepsOf(workflow: WorkflowModel, prefix = ''): readonly StepAtPath[] {
  return inOrder(workflow).flatMap(step => {
    const path = `${prefix}${step.id}`;
    const inner = step.body.kind === 'uses' ? stepsOf(step.body.workflow, `${path}/`) : [];
    return [{ path, step }, ...inner];
  });
}

/** Steps of one workflow in topological order. */
export function inOrder({ steps }: WorkflowModel): readonly StepModel[] {
  const sorted = topologicalOrder(steps);
  return sorted.kind === 'ordered' ? sorted.order : steps;
}

/** Marks of a fan-out, such as `x3`, `matrix` or `selects one`. The size of a matrix is known only at run time. */
export function fanOutMarks({ kind, items, maxParallel, select }: FanOut): readonly string[] {
  const copies = kind === 'matrix' ? 'matrix' : `x${copiesOf(items)}`;
  const limit = maxParallel === undefined ? '' : `, max ${maxParallel} in parallel`;
  return [`${copies}${limit}`, ...(select ? ['selects one'] : [])];
}

/** Number of copies, or `N` if it depends on inputs or on the outputs of other steps. */
function copiesOf(items: FanOut['items']): string {
  const nothing: Scope = { inputs: {}, steps: {}, status: 'success' };
  try {
    return String(items(nothing).length);
  } catch {
    return 'N';
  }
}

/** One row of the diagram: a lane and what it did. */
export interface LaneRow {
  readonly lane: string;
  readonly text: string;
}

interface LaneDiagramOptions {
  /** Width of the terminal. Defaults to 80. */
  readonly columns?: number;
  /** Lanes with a column, from left to right. Defaults to the lanes of the rows, in order of appearance. */
  readonly lanes?: readonly string[];
}

const gap = 2;
/** Minimum width of a column. In a narrower one, truncated names could not be told apart. */
const narrowest = 14;
const mostLines = 3;

/** Draws a schedule with one row per effect and one column per lane. If the columns do not fit, each row names its lane. */
export function laneDiagram(
  rows: readonly LaneRow[],
  { columns = 80, lanes = [...new Set(rows.map(({ lane }) => lane))] }: LaneDiagramOptions = {},
): readonly string[] {
  const numbers = String(rows.length).length;
  const width = Math.floor((columns - numbers) / Math.max(lanes.length, 1)) - gap;
  return width < narrowest && lanes.length > 1
    ? listed(rows, { lanes, numbers, columns })
    : beside(rows, { lanes, numbers, width });
}

interface DiagramLayout {
  readonly lanes: readonly string[];
  readonly numbers: number;
}

function beside(
  rows: readonly LaneRow[],
  { lanes, numbers, width }: DiagramLayout & { readonly width: number },
): readonly string[] {
  const line = (number: string, cells: readonly string[]) =>
    [filledBefore(number, numbers), ...cells.map(cell => filled(cell, width))]
      .join(' '.repeat(gap))
      .trimEnd();
  const cellsOf = (row: LaneRow, text: string) => lanes.map(lane => (lane === row.lane ? text : idle));
  return [
    line(
      '',
      lanes.map(lane => truncate(lane, width)),
    ),
    ...rows.flatMap((row, index) =>
      wrapped(row.text, width)
        .slice(0, mostLines)
        .map((text, part) => line(part === 0 ? String(index + 1) : '', cellsOf(row, text))),
    ),
  ];
}

/** Cell of a lane that does nothing in this row. */
const idle = '│';

function listed(
  rows: readonly LaneRow[],
  { lanes, numbers, columns }: DiagramLayout & { readonly columns: number },
): readonly string[] {
  const name = Math.min(Math.floor(columns / 3), Math.max(...lanes.map(displayWidth)));
  return rows.map(({ lane, text }, index) => {
    const start = `${filledBefore(String(index + 1), numbers)}  ${filled(lane, name)}  `;
    return `${start}${truncate(text, columns - displayWidth(start))}`;
  });
}
