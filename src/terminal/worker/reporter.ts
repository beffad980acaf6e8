import type { HistoryEvent } from '../../core/events.ts';
import { formatDuration } from '../../core/time.ts';
import type { Observation } from '../../engine/environment.ts';
import { sessionSpending, spendingText } from '../../view/cost.ts';
import { firstLine, safeLine } from '../../view/safe-text.ts';
import type { StatusWord } from '../../view/step-board.ts';
import { agentAction } from '../../view/step-progress.ts';
import { dispatcher, type EndReason, type WorkerNews } from '../../worker/contract.ts';
import { formatProblem } from '../../workflow/problems.ts';
import { statusColour } from '../glyphs.ts';
import { clockTime, count, displayWidth, type Paint, painter } from '../text.ts';
import { changesText, landingText, parkedText, transitionText } from '../words.ts';

/** Shows what workers do. */
export interface WorkersReporter {
  /** `worker`: its place among those of this process, from 0. */
  observe(worker: number, observation: Observation): void;
  tell(worker: number, news: WorkerNews): void;
  close(): Promise<void>;
}

interface PlainWorkersOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly branch: string;
  /** Only what somebody has to know even so. */
  readonly quiet?: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

interface Sayer {
  /** Of all workers of this process. */
  readonly names: readonly (string | undefined)[];
  readonly worker: number;
  readonly at: number;
  readonly paint: Paint;
}

/** `12:01:03 worker-1  landed ...`; what has further lines keeps them below. */
export function namedLines(
  { status, text }: WorkerLine,
  { names, worker, at, paint }: Sayer,
): readonly string[] {
  const name = names[worker] ?? 'worker';
  const width = names.reduce((widest, each) => Math.max(widest, displayWidth(each ?? '')), 0);
  const column = name + ' '.repeat(Math.max(0, width - displayWidth(name)));
  const [first = '', ...further] = text.split('\n');
  const colour = status === undefined ? undefined : statusColour(status);
  return [`${paint('dim', clockTime(at))} ${paint('bold', column)}  ${paint(colour, first)}`, ...further];
}

const toBeKnown: ReadonlySet<WorkerNews['kind']> = new Set(['problems', 'let-go', 'left']);

/** A log for pipes and CI: `12:01:03 worker-1  landed 3f2c1ab0d2 Mend the parser on main`. */
export function createPlainWorkersReporter({
  write,
  color,
  branch,
  quiet = false,
  now,
}: PlainWorkersOptions): WorkersReporter {
  const paint = painter(color);
  const names: string[] = [];
  const told = new Set<string>();
  const put = (worker: number, { status, text, detail }: WorkerLine) => {
    const line = { status, text: detail === undefined ? text : `${text} (${detail})` };
    for (const shown of namedLines(line, { names, worker, at: now(), paint })) write(`${shown}\n`);
  };
  return {
    observe: (worker, observation) => {
      if (quiet && observation.kind !== 'notice') return;
      for (const line of observationLines(observation)) put(worker, line);
    },
    tell: (worker, news) => {
      if (news.kind === 'enlisted') names[worker] = news.name;
      if (quiet && !toBeKnown.has(news.kind)) return;
      for (const line of newsLines(news, { branch })) {
        // What is wrong with a task stays wrong until somebody mends it, and need not be said at every look.
        if (news.kind === 'problems' && told.has(line.text)) continue;
        if (news.kind === 'problems') told.add(line.text);
        put(worker, line);
      }
    },
    close: async () => {},
  };
}

/** Something that is worth a line, and how it is meant. */
export interface WorkerLine {
  readonly status: StatusWord | undefined;
  readonly text: string;
  /** For those who have room for it. */
  readonly detail?: string | undefined;
}

const line = (status: StatusWord | undefined, text: string): WorkerLine => ({ status, text });

/** What happens in the run of a worker, as lines; nothing for what is not worth one. */
export function observationLines(observation: Observation): readonly WorkerLine[] {
  switch (observation.kind) {
    case 'events':
      return observation.events.flatMap(event => eventLine(event) ?? []);
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

function eventLine(event: HistoryEvent): WorkerLine | undefined {
  switch (event.type) {
    case 'transition.taken': {
      const { from, to, args = {}, why } = event.data;
      if (from !== dispatcher) return line('running', transitionText(event.data));
      const { task = '' } = args;
      return line('running', safeLine(`takes ${task}: the agent ${to} begins${why ? ` (${why})` : ''}`));
    }
    case 'session.started': {
      const { agent, kind, resumes } = event.data;
      const who = agent === kind ? agent : `${agent} (${kind})`;
      return line('running', safeLine(`${who} ${resumes ? 'goes on' : 'is at work'}`));
    }
    case 'session.ended': {
      const { denials = [], usage } = event.data;
      const denied = denials.map(({ tool, lineToAdd }) =>
        lineToAdd ? `${tool} (to allow it: ${lineToAdd})` : tool,
      );
      if (denied.length > 0)
        return line('waiting', safeLine(`was denied ${[...new Set(denied)].join(', ')}`));
      const spent = spendingText(sessionSpending(usage));
      return usage.inputTokens + usage.outputTokens > 0 ? line(undefined, spent) : undefined;
    }
    case 'workspace.saved':
      return event.data.files === 0 ? undefined : line('running', `saved ${changesText(event.data)}`);
    case 'landing.started':
      return line('running', safeLine(`lands on ${event.data.onto}`));
    case 'landing.ended': {
      const { outcome, commit, commits = 0, from, subjects = [], onto } = event.data;
      const isLanded = outcome === 'landed' || outcome === 'nothing-to-land';
      if (outcome !== 'landed' || commit === undefined || subjects.length === 0)
        return line(isLanded ? 'completed' : 'failed', landingText(event.data));
      const text = safeLine(`landed ${commit.slice(0, 10)} ${subjects.at(-1)} on ${onto}`);
      // Histories of before do not say it.
      const rebased = from === undefined ? '' : ` rebased onto ${from.slice(0, 10)}`;
      return { ...line('completed', text), detail: `${count(commits, 'commit')}${rebased}, fast-forward` };
    }
    case 'landing.parked':
      return line('waiting', parkedText(event.data));
    case 'step.paused':
      return line(
        'waiting',
        safeLine(`pauses for ${formatDuration(event.data.delayMs)}: ${event.data.reason}`),
      );
    case 'step.failed':
      return line('failed', safeLine(`failed: ${firstLine(event.data.error.message)}`));
    case 'step.interrupted':
      return line('waiting', `${safeLine(event.step ?? '')} had been interrupted`);
    default:
      return undefined;
  }
}

/** What a worker tells of itself, as lines. */
export function newsLines(news: WorkerNews, { branch }: { readonly branch: string }): readonly WorkerLine[] {
  switch (news.kind) {
    case 'enlisted':
      return [line('running', `works on ${safeLine(branch)}`)];
    case 'problems':
      return news.problems.map(problem => line('failed', formatProblem(problem)));
    case 'takes-over':
      return [line('running', `takes over run ${news.runId}, which nobody is at work on any more`)];
    case 'lost':
      return [
        line(
          'waiting',
          `leaves ${news.runId === undefined ? 'its run' : `run ${news.runId}`} to another worker`,
        ),
      ];
    case 'nothing':
      return [line(undefined, `nothing to do: ${safeLine(news.why)}`)];
    case 'sleeps':
      return [line('waiting', `sleeps: ${safeLine(news.why)}`)];
    case 'woke':
      return [line('running', `wakes up: ${wakeWords[news.what]}`)];
    case 'let-go': {
      const where = news.branch === undefined ? '' : `; what was done is on ${safeLine(news.branch)}`;
      const word = news.state === 'released' ? 'gives back' : 'gives up';
      return [
        line(
          news.state === 'released' ? 'waiting' : 'failed',
          `${word} ${safeLine(news.task)}: ${safeLine(news.reason)}${where}`,
        ),
        ...(news.hint === undefined ? [] : [line(undefined, `hint: ${safeLine(news.hint)}`)]),
      ];
    }
    case 'left':
      return [line('waiting', safeLine(`note: ${news.what} is left: ${news.why}; to clean up: reprise gc`))];
    case 'ended':
      return [line(news.reason === 'budget' ? 'failed' : 'completed', endWords[news.reason])];
  }
}

const wakeWords: Readonly<Record<Extract<WorkerNews, { kind: 'woke' }>['what'], string>> = {
  main: 'the branch has moved',
  claims: 'a task was taken or let go',
  tasks: 'the list of tasks has changed',
  abandoned: 'a worker has left its task behind',
};

const endWords: Readonly<Record<EndReason, string>> = {
  stopped: 'stops, as it was told to',
  idle: 'ends: nothing is left to do, and nobody is at work',
  once: 'ends after one task',
  'nothing-to-do': 'ends: there is nothing to do',
  'max-tasks': 'ends: it has had as many tasks as it was to have',
  budget: 'ends: its budget is used up',
};
