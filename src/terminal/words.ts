import { type ErrorData, type EventOf, formatDuration, isJsonObject, type Json } from '../core/index.ts';
import { definitionPath, outerUnits } from '../engine/state/index.ts';
import {
  firstLine,
  furtherLines,
  type RunView,
  type StepProgress,
  safeLine,
  type WaitingFor,
} from '../view/index.ts';
import { count } from './text.ts';

export const errorLine = (error: ErrorData): string => firstLine(error.message) || error.code;

/** Text about a wait. Without `now`, it does not say how much time is left. */
function waitText(wait: WaitingFor, now?: number): string {
  switch (wait.on) {
    case 'approval':
      return `waiting for approval: ${safeLine(wait.message)}`;
    case 'signal':
      return `waiting for signal ${safeLine(wait.signal)}`;
    case 'timer':
      if (wait.until === undefined || now === undefined) return 'sleeping';
      return `sleeping, ${formatDuration(Math.max(0, wait.until - now))} left`;
    case 'limit': {
      const left = now === undefined ? '' : ` for ${formatDuration(Math.max(0, wait.until - now))}`;
      return `pausing${left}: ${safeLine(wait.reason)}`;
    }
  }
}

/** Reason why a step was skipped. `view` provides the status of the step that caused it. */
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

/** Paths without children. */
export function leavesOf(paths: readonly string[]): readonly string[] {
  const holders = new Set(paths.flatMap(outerUnits));
  return paths.filter(path => !holders.has(path));
}

/** Steps that a resume runs again, without parents and removed steps. */
export function stepsToRunAgain({
  invalidated = [],
  steps,
}: EventOf<'run.resumed'>['data']): readonly string[] {
  const known = new Set(steps ?? invalidated);
  const holders = new Set([...known, ...invalidated].flatMap(outerUnits));
  const isThere = (path: string) => known.has(path) || known.has(definitionPath(path));
  return invalidated.filter(path => isThere(path) && !holders.has(path));
}

/** `attempt 2 of 3`, or `attempt 4` if attempts from before a restart exceed the limit. */
export function attemptText(attempt: number, limit: number | undefined): string {
  return limit !== undefined && attempt <= limit ? `attempt ${attempt} of ${limit}` : `attempt ${attempt}`;
}

export function answerText({ choice, by, comment }: EventOf<'approval.given'>['data']): string {
  const byText = by ? ` by ${safeLine(by)}` : '';
  return `${safeLine(choice)}${byText}${comment ? `: ${safeLine(comment)}` : ''}`;
}

/** Note on a step that its status does not already say. */
export function noteOf(step: StepProgress, view: RunView, now?: number): string {
  switch (step.status) {
    case 'pending':
      return step.interrupted ? 'was interrupted' : '';
    case 'running':
      return '';
    case 'waiting':
      return step.waits.map(wait => waitText(wait, now)).join('; ') || 'waiting';
    case 'retrying': {
      const when =
        now === undefined || step.retryAt === undefined
          ? ''
          : ` in ${formatDuration(Math.max(0, step.retryAt - now))}`;
      return `retrying${when}${step.error ? `: ${errorLine(step.error)}` : ''}`;
    }
    case 'completed':
      if (step.reused) return 'reused';
      return step.answer ? answerText(step.answer) : workNote(step);
    case 'failed':
      return step.error ? errorLine(step.error) : '';
    case 'cancelled':
      return step.reason && step.reason !== 'cancelled' ? safeLine(step.reason) : '';
    case 'skipped':
      return step.skipped ? skipText(step.skipped, view) : '';
  }
}

interface PendingApproval {
  readonly runId: string;
  readonly step: string;
  readonly choices: readonly string[];
}

/** Command that answers an approval. If `approve` is not a choice, it names the first choice other than `reject`. */
export function approveCommand({ runId, step, choices }: PendingApproval): string {
  const choice = choices.includes('approve') ? undefined : choices.find(each => each !== 'reject');
  return `reprise approve ${runId} ${shellWord(step)}${choice === undefined ? '' : ` --choice ${shellWord(choice)}`}`;
}

/** Quotes a word for the shell if necessary. */
export const shellWord = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${safeLine(word).replaceAll("'", "'\\''")}'`;

type LandingEnd = EventOf<'landing.ended'>['data'];

/** `3 files, +10 -2`. */
export const changesText = ({ files, insertions, deletions }: EventOf<'workspace.saved'>['data']): string =>
  `${count(files, 'file')}, +${insertions} -${deletions}`;

/** Matrix values of a copy: `file=a.md, os=linux`. */
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
      return `nothing to land: ${target} already has all changes`;
    case 'conflict':
      return `${safeLine(branch)} conflicts with ${target}${why}`;
    case 'verify-failed':
      return `not landed on ${target}: verification failed${lastLineOf(message)}`;
    case 'lost-the-race':
      return `not landed on ${target}${why || `: ${target} kept moving`}`;
    case 'fenced':
      return `not landed on ${target}${why || ': the work was taken over'}`;
    case 'main-checkout-in-the-way':
      return `not landed on ${target}${why || ': its checkout blocks the landing'}`;
    case 'needs-approval':
      return `not landed on ${target}${why || ': it changes protected files'}`;
  }
}

export const parkedText = ({ branch, message }: EventOf<'landing.parked'>['data']): string =>
  `parked on ${safeLine(branch)}: ${firstLine(message)}${lastLineOf(message)}`;

export const deliveredText = ({ branch, commit, remote }: EventOf<'landing.delivered'>['data']): string =>
  safeLine(`delivered ${commit.slice(0, 10)} on ${branch}${remote ? `, pushed to ${remote}` : ''}`);

/** `passed 2 checks`, or why the work did not pass and whether the agent is asked again. */
export function checkedText({ passed, checks, error, rework }: EventOf<'work.checked'>['data']): string {
  if (passed) return `passed ${count(checks.length, 'check')}`;
  const why = firstLine(error?.message ?? 'a check failed');
  return rework === undefined ? why : `asking the agent again (rework ${rework}): ${why}`;
}

/** Last line of the quoted output, which usually names the cause. The history has all of it. */
function lastLineOf(message = ''): string {
  const last = furtherLines(message).findLast(line => line.trim() !== '');
  return last === undefined ? '' : `: ${safeLine(last.trim())}`;
}

/** `implement -> review (focus=tests): P1, the only ready task`. */
export function transitionText({ from, to, args = {}, why }: EventOf<'transition.taken'>['data']): string {
  const given = Object.entries(args).map(([name, value]) => safeLine(`${name}=${value}`));
  const inputs = given.length > 0 ? ` (${given.join(', ')})` : '';
  return `${safeLine(from)} -> ${safeLine(to)}${inputs}${why ? `: ${safeLine(why)}` : ''}`;
}

/** Text about several landings: the first refusal, or the sum of what landed. */
function landingsText(landings: readonly LandingEnd[]): string {
  const [first, ...others] = landings;
  if (!first) return '';
  const refused = landings.find(({ outcome }) => outcome !== 'landed' && outcome !== 'nothing-to-land');
  if (refused || others.length === 0) return landingText(refused ?? first);
  const commits = landings.reduce((sum, each) => sum + (each.commits ?? 0), 0);
  const last = landings.findLast(({ outcome }) => outcome === 'landed') ?? first;
  return landingText({ ...last, commits });
}

/** Text about the selection of one copy. */
export function selectionText({ winner, by, candidates, reason }: EventOf<'selection.made'>['data']): string {
  const score = candidates.find(({ worker }) => worker === winner)?.score;
  const passed = candidates.filter(each => each.passed).length;
  const scored = score === undefined ? '' : ` with score ${score}`;
  const why = reason ? `: ${safeLine(reason)}` : '';
  return `copy ${winner} was selected by ${by}${scored} (${passed} of ${candidates.length} passed)${why}`;
}

/** `agent coder (claude) started`. */
export function sessionStartText({ agent, kind, resumes }: EventOf<'session.started'>['data']): string {
  const name = agent === kind ? agent : `${agent} (${kind})`;
  return safeLine(`agent ${name} ${resumes ? 'resumed' : 'started'}`);
}

export function fanOutText({ kind, total, items }: EventOf<'fanout.expanded'>['data']): string {
  const values = kind === 'matrix' ? (items ?? []).map(itemText).join('; ') : '';
  return `${count(total, 'copy', 'copies')}${values === '' ? '' : `: ${values}`}`;
}

/** Result of a completed step or copy. */
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

/** Whether the step is the selected copy. */
export const isSelected = ({ path, parent }: StepProgress): boolean => {
  const winner = parent?.work.selection?.winner;
  return winner !== undefined && path === `${parent?.path}:${winner}`;
};

function fanOutNote({ children, work }: StepProgress): string {
  const succeeded = children.filter(({ status }) => status === 'completed').length;
  const selected = work.selection ? `, copy ${work.selection.winner} selected` : '';
  return `${succeeded} of ${count(children.length, 'copy', 'copies')} succeeded${selected}`;
}
