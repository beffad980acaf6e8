import { formatDuration, type HistoryEvent } from '../../core/index.ts';
import type { Observation } from '../../engine/index.ts';
import {
  agentAction,
  firstLine,
  nothingSpent,
  type Spending,
  type StatusWord,
  safeLine,
  sessionSpending,
  spendingText,
  spentTogether,
  unknownSession,
} from '../../view/index.ts';
import { dispatcher, type EndReason, type WorkerNews } from '../../worker/index.ts';
import { formatProblem } from '../../workflow/index.ts';
import { statusColour } from '../glyphs.ts';
import { clockTime, count, displayWidth, type Paint, painter } from '../text.ts';
import {
  changesText,
  checkedText,
  deliveredText,
  landingText,
  parkedText,
  sessionStartText,
  transitionText,
} from '../words.ts';

/** Shows the activity of workers. */
export interface WorkersReporter {
  /** `worker` is the index of the worker in this process, from 0. */
  observe(worker: number, observation: Observation): void;
  report(worker: number, news: WorkerNews): void;
  close(): Promise<void>;
}

interface PlainWorkersOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly branch: string;
  /** Whether to print only what needs attention. */
  readonly quiet?: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

interface LineContext {
  /** Names of all workers of this process. */
  readonly names: readonly (string | undefined)[];
  readonly worker: number;
  readonly at: number;
  readonly paint: Paint;
}

/** Formats `12:01:03 worker-1  landed ...`. Further lines of the text follow unchanged. */
export function namedLines(
  { status, text }: WorkerLine,
  { names, worker, at, paint }: LineContext,
): readonly string[] {
  const name = names[worker] ?? 'worker';
  const width = names.reduce((widest, each) => Math.max(widest, displayWidth(each ?? '')), 0);
  const column = name + ' '.repeat(Math.max(0, width - displayWidth(name)));
  const [first = '', ...further] = text.split('\n');
  const colour = status === undefined ? undefined : statusColour(status);
  return [`${paint('dim', clockTime(at))} ${paint('bold', column)}  ${paint(colour, first)}`, ...further];
}

const needsAttention: ReadonlySet<WorkerNews['kind']> = new Set(['problems', 'abandoned', 'leftover']);

/** Log for pipes and CI, with lines such as `12:01:03 worker-1  landed 3f2c1ab0d2 Fix the parser on main`. */
export function createPlainWorkersReporter({
  write,
  color,
  branch,
  quiet = false,
  now,
}: PlainWorkersOptions): WorkersReporter {
  const paint = painter(color);
  const names: string[] = [];
  const reported = new Set<string>();
  /** Workers that continue a run of a dead worker. What its last session cost is unknown. */
  const continuing = new Set<number>();
  const put = (worker: number, { status, text, detail }: WorkerLine) => {
    const line = { status, text: detail === undefined ? text : `${text} (${detail})` };
    for (const shown of namedLines(line, { names, worker, at: now(), paint })) write(`${shown}\n`);
  };
  return {
    observe: (worker, observation) => {
      if (quiet && observation.kind !== 'notice') return;
      if (observation.kind === 'events') {
        const [first] = observation.events;
        if (first?.type === 'run.started') continuing.delete(worker);
        if (first?.type === 'run.resumed' && observation.events.some(isInterruptedWork))
          continuing.add(worker);
      }
      const before = continuing.has(worker) ? unknownSession : nothingSpent;
      for (const line of observationLines(observation, before)) put(worker, line);
    },
    report: (worker, news) => {
      if (news.kind === 'enlisted') names[worker] = news.name;
      if (quiet && !needsAttention.has(news.kind)) return;
      for (const line of newsLines(news, { branch })) {
        // A worker finds the problems of a task again whenever it reads the tasks. Each is printed once.
        if (news.kind === 'problems' && reported.has(line.text)) continue;
        if (news.kind === 'problems') reported.add(line.text);
        put(worker, line);
      }
    },
    close: async () => {},
  };
}

/** Whether a worker was interrupted while an agent worked on its task. */
export const isInterruptedWork = ({ type, step }: HistoryEvent): boolean =>
  type === 'step.interrupted' && step === 'work';

/** A line of the log, with the status that gives it a color. */
export interface WorkerLine {
  readonly status: StatusWord | undefined;
  readonly text: string;
  /** Further text that the live view leaves out. */
  readonly detail?: string | undefined;
}

const line = (status: StatusWord | undefined, text: string): WorkerLine => ({ status, text });

/**
 * Lines for an observation in the run of a worker; none if it is not worth one. `before` is the spending of the session
 * that an agent continues.
 */
export function observationLines(
  observation: Observation,
  before: Spending = nothingSpent,
): readonly WorkerLine[] {
  switch (observation.kind) {
    case 'events':
      return observation.events.flatMap(event => eventLine(event, before) ?? []);
    case 'agent': {
      const action = agentAction(observation.event, observation.folder);
      return action === undefined ? [] : [line(undefined, `| ${action}`)];
    }
    case 'notice':
      return [line(undefined, `note: ${safeLine(observation.message)}`)];
    case 'output':
    case 'log':
      return [];
  }
}

function eventLine(event: HistoryEvent, before: Spending): WorkerLine | undefined {
  switch (event.type) {
    case 'transition.taken': {
      const { from, to, args = {}, why } = event.data;
      if (from !== dispatcher) return line('running', transitionText(event.data));
      const { task = '' } = args;
      return line('running', safeLine(`picked up ${task}, starting agent ${to}${why ? ` (${why})` : ''}`));
    }
    case 'session.started':
      return line('running', sessionStartText(event.data));
    case 'session.ended': {
      const { denials = [], usage } = event.data;
      const denied = denials.map(({ tool, lineToAdd }) =>
        lineToAdd ? `${tool} (to allow it: ${lineToAdd})` : tool,
      );
      if (denied.length > 0)
        return line('waiting', safeLine(`was denied ${[...new Set(denied)].join(', ')}`));
      const spent = spendingText(spentTogether([before, sessionSpending(usage)]));
      return usage.inputTokens + usage.outputTokens > 0 ? line(undefined, spent) : undefined;
    }
    case 'workspace.saved':
      return event.data.files === 0 ? undefined : line('running', `saved ${changesText(event.data)}`);
    case 'landing.started':
      return line('running', safeLine(`landing on ${event.data.onto}`));
    case 'landing.ended': {
      const { outcome, commit, commits = 0, from, subjects = [], onto } = event.data;
      const isLanded = outcome === 'landed' || outcome === 'nothing-to-land';
      if (outcome !== 'landed' || commit === undefined || subjects.length === 0)
        return line(isLanded ? 'completed' : 'failed', landingText(event.data));
      const text = safeLine(`landed ${commit.slice(0, 10)} ${subjects.at(-1)} on ${onto}`);
      // Older histories do not record `from`.
      const rebased = from === undefined ? '' : ` rebased onto ${from.slice(0, 10)}`;
      return { ...line('completed', text), detail: `${count(commits, 'commit')}${rebased}, fast-forward` };
    }
    case 'landing.delivered':
      return line('completed', deliveredText(event.data));
    case 'landing.parked':
      return line('waiting', parkedText(event.data));
    case 'work.checked':
      return event.data.rework === undefined ? undefined : line('retrying', checkedText(event.data));
    case 'step.paused':
      return line(
        'waiting',
        safeLine(`pausing for ${formatDuration(event.data.delayMs)}: ${event.data.reason}`),
      );
    case 'step.failed':
      return line('failed', safeLine(`failed: ${firstLine(event.data.error.message)}`));
    case 'step.interrupted':
      return line('waiting', `step ${safeLine(event.step ?? '')} was interrupted`);
    default:
      return undefined;
  }
}

/** Lines for the news of a worker. */
export function newsLines(news: WorkerNews, { branch }: { readonly branch: string }): readonly WorkerLine[] {
  switch (news.kind) {
    case 'enlisted':
      return [line('running', `started on branch ${safeLine(branch)}`)];
    case 'problems':
      return news.problems.map(problem => line('failed', formatProblem(problem)));
    case 'takes-over':
      return [line('running', `taking over abandoned run ${news.runId}`)];
    case 'waits': {
      const name = safeLine(news.task ?? `run ${news.runId}`);
      return [
        line('waiting', `${name} waits for an approval: ${safeLine(news.why)}`),
        line(
          undefined,
          `hint: see the changes: reprise diff ${news.runId} work; land them: reprise approve ${news.runId}`,
        ),
      ];
    }
    case 'unreadable':
      return [
        line(
          'failed',
          safeLine(`run ${news.runId} cannot be read and was marked as failed: ${firstLine(news.why)}`),
        ),
        line(undefined, 'hint: its history is kept; its task can be done again'),
      ];
    case 'lost':
      return [
        line(
          'waiting',
          `another worker took over ${news.runId === undefined ? 'its run' : `run ${news.runId}`}`,
        ),
      ];
    case 'nothing':
      return [line(undefined, `nothing to do: ${safeLine(news.why)}`)];
    case 'sleeps':
      return [line('waiting', `sleeping: ${safeLine(news.why)}`)];
    case 'woke':
      return [line('running', `woke up: ${wakeWords[news.what]}`)];
    case 'abandoned': {
      const where = news.branch === undefined ? '' : `; its work is on ${safeLine(news.branch)}`;
      const word = news.state === 'released' ? 'released' : 'gave up on';
      return [
        line(
          news.state === 'released' ? 'waiting' : 'failed',
          `${word} ${safeLine(news.task)}: ${safeLine(news.reason)}${where}`,
        ),
        ...(news.hint === undefined ? [] : [line(undefined, `hint: ${safeLine(news.hint)}`)]),
      ];
    }
    case 'suspended':
      return [
        line(
          'waiting',
          `suspended ${news.task === undefined ? `run ${news.runId}` : safeLine(news.task)}: ${safeLine(news.reason)}`,
        ),
        ...(news.hint === undefined ? [] : [line(undefined, `hint: ${safeLine(news.hint)}`)]),
      ];
    case 'leftover':
      return [
        line('waiting', safeLine(`note: ${news.what} was not removed: ${news.why}; to clean up: reprise gc`)),
      ];
    case 'ended':
      return [line(endedBadly.has(news.reason) ? 'failed' : 'completed', endWords[news.reason])];
  }
}

const wakeWords: Readonly<Record<Extract<WorkerNews, { kind: 'woke' }>['what'], string>> = {
  main: 'the branch moved',
  claims: 'a task was claimed or released',
  tasks: 'the list of tasks changed',
  abandoned: 'a worker abandoned its task',
  stalled: 'a worker stalled or continued',
};

const endedBadly: ReadonlySet<EndReason> = new Set(['budget', 'stalled']);

const endWords: Readonly<Record<EndReason, string>> = {
  stopped: 'stopped by request',
  idle: 'done: no task is ready and no worker is busy',
  once: 'done: finished one task (--once)',
  run: 'done: the run cannot continue further',
  'nothing-to-do': 'done: nothing to do',
  'max-tasks': 'done: reached --max-tasks',
  budget: 'done: reached --budget',
  stalled: 'gave up waiting for a stalled process',
};
