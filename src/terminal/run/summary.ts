import { formatDuration, type HistoryEvent } from '../../core/index.ts';
import { logFile, type RunResult, type Waiting } from '../../engine/index.ts';
import { definitionPath } from '../../engine/state/index.ts';
import { type RunView, type StatusWord, safeLine, spendingText, viewOf } from '../../view/index.ts';
import type { WorkflowModel } from '../../workflow/index.ts';
import { type Cause, causeLines } from '../errors.ts';
import { type Glyphs, glyphsFor, statusColour } from '../glyphs.ts';
import { stepsOf } from '../graph.ts';
import { count, type Paint, painter } from '../text.ts';
import { type NextOptions, nextLines, type ShownRunStatus } from './next-commands.ts';
import { landable, stepTable, workBlocks } from './summary-parts.ts';

export interface SummaryOptions {
  /** Result of the run. If `undefined`, the status is derived from the history. */
  readonly result: RunResult | undefined;
  readonly history: readonly HistoryEvent[];
  readonly workflow?: WorkflowModel | undefined;
  readonly color: boolean;
  readonly columns: number;
  readonly unicode?: boolean | undefined;
  /** Whether a process is running the run, so that a history without an end is not an interruption. */
  readonly running?: boolean | undefined;
  /** State folder. The logs of shell steps are in `<stateDir>/logs`. */
  readonly stateDir?: string | undefined;
  /** Root of the project, relative to the current folder. Defaults to the current folder. */
  readonly root?: string | undefined;
  /** Whether a folder, relative to the root of the project, still exists. Defaults to true. */
  readonly isThere?: ((path: string) => boolean) | undefined;
  /** Suffix of suggested commands, such as ` --state-dir x`. */
  readonly commandSuffix?: string | undefined;
}

/** Summary of a run: status, steps, work, cause of a failure, and the commands to type next. */
export function formatSummary(options: SummaryOptions): string {
  const { result, history, color, columns, commandSuffix } = options;
  const view = viewOf(history);
  const paint = painter(color);
  const glyphs = glyphsFor(options.unicode);
  const runId = result?.runId ?? view.runId ?? '';
  const waiting = result?.status === 'waiting' ? result.waiting : waitingOf(view);
  const status = shownStatusOf(view, waiting, options);
  const cause = causeOf(view, options);
  const table = stepTable(view, { glyphs, paint, width: columns, interrupted: status === 'interrupted' });
  const blocks = [
    [headline(status, view, { glyphs, paint })],
    [...table, ...overlapLines(view, paint), ...costLines(view, paint)],
    ...workBlocks(view, {
      glyphs,
      paint,
      root: options.root,
      stateDir: options.stateDir,
      isThere: options.isThere,
    }),
    ...((status === 'failed' || status === 'suspended') && cause ? [causeLines(cause, paint)] : []),
    nextLines({ status, runId, waiting, columns, commandSuffix, ...workToLookAt(view) }),
  ];
  const text = blocks.filter(block => block.length > 0).map(block => block.join('\n'));
  return `${text.join('\n\n')}\n`;
}

function shownStatusOf(
  view: RunView,
  waiting: readonly Waiting[],
  { result, running }: SummaryOptions,
): ShownRunStatus {
  if (result) return result.status;
  switch (view.end?.type) {
    case 'run.completed':
      return 'completed';
    case 'run.failed':
      return 'failed';
    case 'run.cancelled':
      return 'cancelled';
    case undefined:
      if (running) return 'running';
      if (view.suspension) return 'suspended';
      return isStuck(view, waiting) ? 'waiting' : 'interrupted';
  }
}

/** Whether only an approval or a signal can continue the run. */
function isStuck(view: RunView, waiting: readonly Waiting[]): boolean {
  const blocked = new Set(waiting.filter(({ on }) => on !== 'timer').map(({ step }) => step));
  const leaves = [...view.active].filter(({ children }) => children.length === 0);
  return leaves.length > 0 && leaves.every(({ path }) => blocked.has(path));
}

function waitingOf(view: RunView): readonly Waiting[] {
  const active = [...view.active].sort((a, b) => a.index - b.index);
  return active.flatMap(({ path: step, waits, answer }) =>
    answer
      ? []
      : waits.map(
          (wait): Waiting =>
            wait.on === 'timer' || wait.on === 'limit' ? { step, on: 'timer' } : { step, ...wait },
        ),
  );
}

function headline(
  status: ShownRunStatus,
  view: RunView,
  { glyphs, paint }: { readonly glyphs: Glyphs; readonly paint: Paint },
): string {
  const took = formatDuration(view.elapsedMs());
  const resumed =
    view.resumes === 0 ? '' : `, resumed ${view.resumes === 1 ? 'once' : `${view.resumes} times`}`;
  const name = safeLine(view.workflow ?? 'the run');
  const say = (status: StatusWord, text: string) =>
    `${paint(statusColour(status), glyphs[status])} ${paint('bold', name)} ${text}${paint('dim', resumed)}`;
  switch (status) {
    case 'completed':
      return say('completed', `completed in ${took}`);
    case 'failed':
      return say('failed', `failed after ${took}`);
    case 'cancelled':
      return say('cancelled', `was cancelled after ${took}${reasonOf(view)}`);
    case 'waiting':
      return `${paint('yellow', glyphs.ellipsis)} ${paint('bold', name)} is waiting for you`;
    case 'suspended':
      return say('waiting', `is suspended after ${took}${whySuspended(view)}`);
    case 'interrupted':
      return say('cancelled', `was interrupted after ${took}: its process died`);
    case 'running':
      return say('running', `is running (last event after ${took})`);
  }
}

function reasonOf({ end }: RunView): string {
  return end?.type === 'run.cancelled' ? `: ${safeLine(end.data.reason)}` : '';
}

const whySuspended = ({ suspension }: RunView): string =>
  suspension ? `: ${safeLine(suspension.reason)}` : '';

/** `4 steps, peak concurrency 3, 2.3s wall, 6.1s total` */
function overlapLines(view: RunView, paint: Paint): readonly string[] {
  const { most, workedMs } = view.overlap;
  const steps = stepsText(view);
  const took = formatDuration(view.elapsedMs());
  const text =
    most === 0
      ? `${steps}, ${took}`
      : `${steps}, peak concurrency ${most}, ${took} wall, ${formatDuration(workedMs)} total`;
  return [`  ${paint('dim', text)}`];
}

/** `4 steps`, or `2 steps, 3 copies` for a run with a fan-out. */
function stepsText(view: RunView): string {
  const copies = view.steps.filter(({ isWorker }) => isWorker).length;
  if (copies === 0) return count(view.total, 'step');
  const isInCopy = (path: string) => path.includes(':');
  const steps = view.steps.filter(
    ({ path, children, fanOut }) => !isInCopy(path) && (children.length === 0 || fanOut),
  );
  return `${count(steps.length, 'step')}, ${count(copies, 'copy', 'copies')}`;
}

/** `agents: $0.42, 120.3k tokens` */
function costLines(view: RunView, paint: Paint): readonly string[] {
  const text = spendingText(view.spent);
  return text === '' ? [] : [`  ${paint('dim', `agents: ${text}`)}`];
}

function workToLookAt(view: RunView): Pick<NextOptions, 'landable' | 'failedAgent'> {
  const failed = [...view.failed].find(({ work, children }) => work.session && children.length === 0);
  return { landable: landable(view).map(({ path }) => path), failedAgent: failed?.path };
}

/** Errors that occur only after a process has started, so that there is a log file. */
const processErrors: ReadonlySet<string> = new Set(['EXIT_NONZERO', 'KILLED', 'TIMEOUT', 'OUTPUT_INVALID']);

function causeOf(view: RunView, { result, workflow, stateDir }: SummaryOptions): Cause | undefined {
  const failure =
    result?.status === 'failed' ? result : view.end?.type === 'run.failed' ? view.end.data : view.suspension;
  if (!failure?.error) return undefined;
  const { error } = failure;
  const step = 'step' in failure ? failure.step : undefined;
  const kind =
    workflow && step !== undefined
      ? stepsOf(workflow).find(({ path }) => path === definitionPath(step))?.step.body.kind
      : undefined;
  const hasLog = kind === 'run' && processErrors.has(error.code);
  if (stateDir === undefined || step === undefined || !hasLog) return { error, step };
  const attempt = view.step(step)?.attempt ?? 1;
  return { error, step, logFile: logFile({ stateDir, runId: view.runId ?? '' }, { step, attempt }) };
}
