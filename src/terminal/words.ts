import type { ErrorData } from '../core/errors.ts';
import type { EventOf } from '../core/events.ts';
import { formatDuration } from '../core/time.ts';
import { definitionPath, outerUnits } from '../engine/state/graph.ts';
import { workNote } from '../report/work-note.ts';
import type { RunView } from '../view/run-view.ts';
import { firstLine, safeLine } from '../view/safe-text.ts';
import type { StepProgress, WaitingFor } from '../view/step-progress.ts';

export const errorLine = (error: ErrorData): string => firstLine(error.message) || error.code;

/** `now` is left out where time stands still. */
function waitText(wait: WaitingFor, now?: number): string {
  switch (wait.on) {
    case 'approval':
      return `waits for approval: ${safeLine(wait.message)}`;
    case 'signal':
      return `waits for signal ${safeLine(wait.signal)}`;
    case 'timer':
      if (wait.until === undefined || now === undefined) return 'sleeps';
      return `sleeps, ${formatDuration(Math.max(0, wait.until - now))} left`;
    case 'limit': {
      const left = now === undefined ? '' : ` for ${formatDuration(Math.max(0, wait.until - now))}`;
      return `pauses${left}: ${safeLine(wait.reason)}`;
    }
  }
}

/** Why a step was not run. `view` tells how the step ended that it was skipped for. */
export function skipText({ reason, because }: EventOf<'step.skipped'>['data'], view: RunView): string {
  switch (reason) {
    case 'condition':
      return 'its condition is false';
    case 'cancelled':
      return 'the run was cancelled';
    case 'dependency':
    case 'failure': {
      if (because === undefined) return 'another step failed';
      const status = view.step(because)?.status;
      return `${safeLine(because)} ${status === 'skipped' || status === 'cancelled' ? `was ${status}` : 'failed'}`;
    }
  }
}

/** Without those that only hold others. */
export function leavesOf(paths: readonly string[]): readonly string[] {
  const holders = new Set(paths.flatMap(outerUnits));
  return paths.filter(path => !holders.has(path));
}

/** What a resume runs again, counted like the steps of a run: without those that only hold others or are gone. */
export function stepsToRunAgain({
  invalidated = [],
  steps,
}: EventOf<'run.resumed'>['data']): readonly string[] {
  const known = new Set(steps ?? invalidated);
  const holders = new Set([...known, ...invalidated].flatMap(outerUnits));
  const isThere = (path: string) => known.has(path) || known.has(definitionPath(path));
  return invalidated.filter(path => isThere(path) && !holders.has(path));
}

/** `(attempt 2 of 3)`; attempts from before a step was started over make the number pass the limit, which then is left out. */
export function attemptText(attempt: number, limit: number | undefined): string {
  return limit !== undefined && attempt <= limit ? `attempt ${attempt} of ${limit}` : `attempt ${attempt}`;
}

export function answerText({ choice, by, comment }: EventOf<'approval.given'>['data']): string {
  const whom = by ? ` by ${safeLine(by)}` : '';
  return `${safeLine(choice)}${whom}${comment ? `: ${safeLine(comment)}` : ''}`;
}

/** What there is to say of a step beyond its status. */
export function noteOf(step: StepProgress, view: RunView, now?: number): string {
  switch (step.status) {
    case 'pending':
      return step.interrupted ? 'was interrupted' : '';
    case 'running':
      return '';
    case 'waiting':
      return step.waits.map(wait => waitText(wait, now)).join('; ') || 'waits';
    case 'retrying': {
      const when =
        now === undefined || step.retryAt === undefined
          ? ''
          : ` in ${formatDuration(Math.max(0, step.retryAt - now))}`;
      return `again${when}${step.error ? `: ${errorLine(step.error)}` : ''}`;
    }
    case 'completed':
      if (step.reused) return 'taken over';
      return step.answer ? answerText(step.answer) : workNote(step);
    case 'failed':
      return step.error ? errorLine(step.error) : '';
    case 'cancelled':
      return step.reason && step.reason !== 'cancelled' ? safeLine(step.reason) : '';
    case 'skipped':
      return step.skipped ? skipText(step.skipped, view) : '';
  }
}

export interface Gate {
  readonly runId: string;
  readonly step: string;
  readonly choices: readonly string[];
}

/** What to type to let the run go on; where `approve` is no choice, the first that lets it. */
export function approveCommand({ runId, step, choices }: Gate): string {
  const choice = choices.includes('approve') ? undefined : choices.find(each => each !== 'reject');
  return `reprise approve ${runId} ${shellWord(step)}${choice === undefined ? '' : ` --choice ${shellWord(choice)}`}`;
}

/** A word for a shell, quoted if it has to be. */
export const shellWord = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${safeLine(word).replaceAll("'", "'\\''")}'`;
