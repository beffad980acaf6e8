import type { HistoryEvent } from '../../core/events.ts';
import { formatDuration } from '../../core/time.ts';
import type { Observation } from '../../engine/environment.ts';
import { count } from '../../report/count.ts';
import { changesText, landingText, parkedText, transitionText } from '../../report/work-words.ts';
import { sessionSpending, spendingText } from '../../view/cost.ts';
import { firstLine, safeLine } from '../../view/safe-text.ts';
import type { StatusWord } from '../../view/step-board.ts';
import { agentAction } from '../../view/step-progress.ts';
import { dispatcher, type EndReason, type WorkerNews } from '../../worker/contract.ts';
import { formatProblem } from '../../workflow/problems.ts';

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
