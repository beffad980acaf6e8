import type { ErrorData } from '../core/errors.ts';
import type { EventOf } from '../core/events.ts';
import { isJsonObject, type Json } from '../core/json.ts';
import { formatDuration } from '../core/time.ts';
import { definitionPath, outerUnits } from '../engine/state/graph.ts';
import type { RunView } from '../view/run-view.ts';
import { firstLine, furtherLines, safeLine } from '../view/safe-text.ts';
import type { StepProgress, WaitingFor } from '../view/step-progress.ts';
import { count } from './text.ts';

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

interface Gate {
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

type LandingEnd = EventOf<'landing.ended'>['data'];

/** `3 files, +10 -2`. */
export const changesText = ({ files, insertions, deletions }: EventOf<'workspace.saved'>['data']): string =>
  `${count(files, 'file')}, +${insertions} -${deletions}`;

/** What is special about a worker: `file=a.md, os=linux`. */
export function itemText(item: Json | undefined): string {
  if (item === undefined || item === null) return '';
  if (!isJsonObject(item)) return safeLine(JSON.stringify(item));
  return Object.entries(item)
    .map(([name, value]) => safeLine(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`))
    .join(', ');
}

export function landingText({ outcome, onto, branch, commit, commits, message }: LandingEnd): string {
  const target = safeLine(onto);
  const why = message ? `: ${safeLine(message)}` : '';
  switch (outcome) {
    case 'landed': {
      const many = commits === undefined ? '' : ` ${count(commits, 'commit')}`;
      return `landed${many} on ${target}${commit ? ` (${commit.slice(0, 10)})` : ''}`;
    }
    case 'nothing-to-land':
      return `nothing to land: ${target} has it all`;
    case 'conflict':
      return `${safeLine(branch)} conflicts with ${target}${why}`;
    case 'verify-failed':
      return `not landed on ${target}: the verification failed${afterwards(message)}`;
    case 'lost-the-race':
      return `not landed: ${target} moved again and again${why}`;
    case 'fenced':
      return `not landed on ${target}: somebody else has the work now${why}`;
    case 'main-checkout-in-the-way':
      return `not landed: a checkout of ${target} is in the way${why}`;
  }
}

export const parkedText = ({ branch, message }: EventOf<'landing.parked'>['data']): string =>
  `parked on ${safeLine(branch)}: ${firstLine(message)}${afterwards(message)}`;

/** The last of what was printed, which is why in most cases: all of it is in the history, and no line can hold it. */
function afterwards(message = ''): string {
  const last = furtherLines(message).findLast(line => line.trim() !== '');
  return last === undefined ? '' : `: ${safeLine(last.trim())}`;
}

/** `implement -> review (focus=tests): P1, the only ready task`. */
export function transitionText({ from, to, args = {}, why }: EventOf<'transition.taken'>['data']): string {
  const given = Object.entries(args).map(([name, value]) => safeLine(`${name}=${value}`));
  const told = given.length > 0 ? ` (${given.join(', ')})` : '';
  return `${safeLine(from)} -> ${safeLine(to)}${told}${why ? `: ${safeLine(why)}` : ''}`;
}

/** Several branches that landed are said as one; the first that did not is what matters. */
function landingsText(landings: readonly LandingEnd[]): string {
  const [first, ...others] = landings;
  if (!first) return '';
  const refused = landings.find(({ outcome }) => outcome !== 'landed' && outcome !== 'nothing-to-land');
  if (refused || others.length === 0) return landingText(refused ?? first);
  const commits = landings.reduce((sum, each) => sum + (each.commits ?? 0), 0);
  const last = landings.findLast(({ outcome }) => outcome === 'landed') ?? first;
  return landingText({ ...last, commits });
}

/** How one worker of several was chosen. */
export function selectionText({ winner, by, candidates, reason }: EventOf<'selection.made'>['data']): string {
  const score = candidates.find(({ worker }) => worker === winner)?.score;
  const passed = candidates.filter(each => each.passed).length;
  const scored = score === undefined ? '' : ` with ${score}`;
  const why = reason ? `: ${safeLine(reason)}` : '';
  return `worker ${winner} was selected by ${by}${scored} (${passed} of ${candidates.length} passed)${why}`;
}

export function fanOutText({ kind, total, items }: EventOf<'fanout.expanded'>['data']): string {
  const values = kind === 'matrix' ? (items ?? []).map(itemText).join('; ') : '';
  return `${count(total, 'worker')}${values === '' ? '' : `: ${values}`}`;
}

/** What a step or worker that succeeded came to. */
function workNote(step: StepProgress): string {
  const { work, item } = step;
  if (step.fanOut) return fanOutNote(step);
  if (work.landings.length > 0) return landingsText(work.landings);
  const saved = work.workspace?.saved;
  const parts = [
    itemText(item),
    isSelected(step) ? 'selected' : '',
    saved && saved.files > 0 ? changesText(saved) : '',
  ];
  return parts.filter(part => part !== '').join(', ');
}

/** Whether it is the worker that was picked from several. */
export const isSelected = ({ path, parent }: StepProgress): boolean => {
  const winner = parent?.work.selection?.winner;
  return winner !== undefined && path === `${parent?.path}:${winner}`;
};

function fanOutNote({ children, work }: StepProgress): string {
  const succeeded = children.filter(({ status }) => status === 'completed').length;
  const selected = work.selection ? `, worker ${work.selection.winner} selected` : '';
  return `${succeeded} of ${children.length} succeeded${selected}`;
}
