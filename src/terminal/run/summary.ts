import type { HistoryEvent } from '../../core/events.ts';
import { formatDuration } from '../../core/time.ts';
import { logFile } from '../../engine/log-files.ts';
import type { RunResult, Waiting } from '../../engine/run/result.ts';
import { definitionPath } from '../../engine/state/graph.ts';
import { spendingText } from '../../view/cost.ts';
import { type RunView, viewOf } from '../../view/run-view.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { StatusWord } from '../../view/step-board.ts';
import type { WorkflowModel } from '../../workflow/model.ts';
import { type Cause, causeLines } from '../errors.ts';
import { type Glyphs, glyphsFor, statusColour } from '../glyphs.ts';
import { stepsOf } from '../graph.ts';
import { count, type Paint, painter } from '../text.ts';
import { type NextOptions, nextLines, type Standing } from './next-commands.ts';
import { landable, stepTable, workBlocks } from './summary-parts.ts';

export interface SummaryOptions {
  /** `undefined`: nobody saw how it ended; the history tells. */
  readonly result: RunResult | undefined;
  readonly history: readonly HistoryEvent[];
  readonly workflow?: WorkflowModel | undefined;
  readonly color: boolean;
  readonly columns: number;
  readonly unicode?: boolean | undefined;
  /** Somebody is at it, so a history without an end is not an interruption. */
  readonly running?: boolean | undefined;
  /** Where the logs of shell steps are: `<stateDir>/logs`. */
  readonly stateDir?: string | undefined;
  /** The root of the project, as somebody in the current folder would type it; the current folder by default. */
  readonly root?: string | undefined;
  /** Whether a folder of the project, relative to its root, is still there; all are by default. */
  readonly isThere?: ((path: string) => boolean) | undefined;
  /** What commands to type next end with. */
  readonly commandSuffix?: string | undefined;
}

/** How a run went, for somebody who sees Reprise for the first time, ending with what to type next. */
export function formatSummary(options: SummaryOptions): string {
  const { result, history, color, columns, commandSuffix } = options;
  const view = viewOf(history);
  const paint = painter(color);
  const glyphs = glyphsFor(options.unicode);
  const runId = result?.runId ?? view.runId ?? '';
  const waiting = result?.status === 'suspended' ? result.waiting : waitingOf(view);
  const standing = standingOf(view, waiting, options);
  const cause = causeOf(view, options);
  const table = stepTable(view, { glyphs, paint, width: columns, interrupted: standing === 'interrupted' });
  const blocks = [
    [headline(standing, view, { glyphs, paint })],
    [...table, ...overlapLines(view, paint), ...costLines(view, paint)],
    ...workBlocks(view, { glyphs, paint, root: options.root, isThere: options.isThere }),
    ...(standing === 'failed' && cause ? [causeLines(cause, paint)] : []),
    nextLines({ standing, runId, waiting, columns, commandSuffix, ...workToLookAt(view) }),
  ];
  const text = blocks.filter(block => block.length > 0).map(block => block.join('\n'));
  return `${text.join('\n\n')}\n`;
}

function standingOf(
  view: RunView,
  waiting: readonly Waiting[],
  { result, running }: SummaryOptions,
): Standing {
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
      return isStuck(view, waiting) ? 'suspended' : 'interrupted';
  }
}

/** Whether only a person or a signal can bring the run forward. */
function isStuck(view: RunView, waiting: readonly Waiting[]): boolean {
  const patient = new Set(waiting.filter(({ on }) => on !== 'timer').map(({ step }) => step));
  const leaves = [...view.active].filter(({ children }) => children.length === 0);
  return leaves.length > 0 && leaves.every(({ path }) => patient.has(path));
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
  standing: Standing,
  view: RunView,
  { glyphs, paint }: { readonly glyphs: Glyphs; readonly paint: Paint },
): string {
  const took = formatDuration(view.elapsedMs());
  const resumed =
    view.resumes === 0 ? '' : `, resumed ${view.resumes === 1 ? 'once' : `${view.resumes} times`}`;
  const name = safeLine(view.workflow ?? 'the run');
  const say = (status: StatusWord, text: string) =>
    `${paint(statusColour(status), glyphs[status])} ${paint('bold', name)} ${text}${paint('dim', resumed)}`;
  switch (standing) {
    case 'completed':
      return say('completed', `completed in ${took}`);
    case 'failed':
      return say('failed', `failed after ${took}`);
    case 'cancelled':
      return say('cancelled', `was cancelled after ${took}${reasonOf(view)}`);
    case 'suspended':
      return `${paint('yellow', glyphs.ellipsis)} ${paint('bold', name)} waits for you`;
    case 'interrupted':
      return say('cancelled', `was interrupted after ${took}: its process is gone`);
    case 'running':
      return say('running', `is running (${took} up to its last event)`);
  }
}

function reasonOf({ end }: RunView): string {
  return end?.type === 'run.cancelled' ? `: ${safeLine(end.data.reason)}` : '';
}

/** `4 steps, 3 at once at most, 2.3s (6.1s of work)` */
function overlapLines(view: RunView, paint: Paint): readonly string[] {
  const { most, workedMs } = view.overlap;
  const steps = stepsText(view);
  const took = formatDuration(view.elapsedMs());
  const text =
    most === 0
      ? `${steps}, ${took}`
      : `${steps}, ${most} at once at most, ${took} (${formatDuration(workedMs)} of work)`;
  return [`  ${paint('dim', text)}`];
}

/** Of a step that became many workers, the workers are counted on their own. */
function stepsText(view: RunView): string {
  const workers = view.steps.filter(({ isWorker }) => isWorker).length;
  if (workers === 0) return count(view.total, 'step');
  const isInWorker = (path: string) => path.includes(':');
  const steps = view.steps.filter(
    ({ path, children, fanOut }) => !isInWorker(path) && (children.length === 0 || fanOut),
  );
  return `${count(steps.length, 'step')}, ${count(workers, 'worker')}`;
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

/** What can go wrong only once a process was started, so that there is a log of it. */
const processErrors: ReadonlySet<string> = new Set(['EXIT_NONZERO', 'KILLED', 'TIMEOUT', 'OUTPUT_INVALID']);

function causeOf(view: RunView, { result, workflow, stateDir }: SummaryOptions): Cause | undefined {
  const failure =
    result?.status === 'failed' ? result : view.end?.type === 'run.failed' ? view.end.data : undefined;
  if (!failure) return undefined;
  const { error, step } = failure;
  const kind =
    workflow && step !== undefined
      ? stepsOf(workflow).find(({ path }) => path === definitionPath(step))?.step.body.kind
      : undefined;
  const hasLog = kind === 'run' && processErrors.has(error.code);
  if (stateDir === undefined || step === undefined || !hasLog) return { error, step };
  const attempt = view.step(step)?.attempt ?? 1;
  return { error, step, logFile: logFile({ stateDir, runId: view.runId ?? '' }, { step, attempt }) };
}
