import { type EventOf, formatDuration, type HistoryEvent, type Json } from '../core/index.ts';
import { unitOfEvent } from '../engine/state/index.ts';
import {
  costText,
  type RunView,
  type StatusWord,
  type StepProgress,
  safeLine,
  sessionSpending,
  spendingText,
} from '../view/index.ts';
import { count } from './text.ts';
import {
  answerText,
  approveCommand,
  attemptText,
  changesText,
  checkedText,
  deliveredText,
  errorLine,
  fanOutText,
  landingText,
  leavesOf,
  parkedText,
  selectionText,
  sessionStartText,
  skipText,
  stepsToRunAgain,
  transitionText,
} from './words.ts';

/** Log line for an event. `step` is absent if the event concerns the run as a whole. */
interface EventLine {
  readonly step?: string | undefined;
  readonly status: StatusWord;
  readonly text: string;
}

interface EventLineContext {
  /** View to which the event has been applied. */
  readonly view: RunView;
  /** Maximum number of attempts of a step, including the first. */
  readonly attemptLimit: (path: string) => number | undefined;
  readonly isOptional: (path: string) => boolean;
  /** Whether the step is an approval, which does no work of its own. */
  readonly isGate: (path: string) => boolean;
  /** Suffix of suggested commands, such as ` --state-dir x`. */
  readonly commandSuffix?: string | undefined;
}

/** Log line for an event; `undefined` if the event is not worth one. */
export function eventLine(event: HistoryEvent, context: EventLineContext): EventLine | undefined {
  const { view } = context;
  const path = unitOfEvent(event);
  const line = (status: StatusWord, text: string): EventLine => ({ step: path, status, text });
  const step = path === undefined ? undefined : view.step(path);
  const limit = path === undefined ? undefined : context.attemptLimit(path);
  const attempt = event.attempt ?? 1;
  const again = attempt > 1 ? ` (${attemptText(attempt, limit)})` : '';

  switch (event.type) {
    case 'run.started': {
      const { forkedFrom: from } = event.data;
      const origin = from ? `, forked from ${from.run} at ${safeLine(from.step)}` : '';
      return line(
        'running',
        `run ${event.runId} started: ${count(leavesOf(event.data.steps).length, 'step')}${origin}`,
      );
    }
    case 'run.resumed': {
      const again = stepsToRunAgain(event.data).length;
      return line(
        'running',
        `run ${event.runId} resumed${again > 0 ? `: ${count(again, 'step')} to run again` : ''}`,
      );
    }
    case 'run.suspended':
      return line('waiting', `suspending: ${safeLine(event.data.reason)}`);
    case 'run.completed':
      return line('completed', `completed in ${formatDuration(view.elapsedMs())}`);
    case 'run.failed': {
      const { error, step: cause } = event.data;
      const where = cause === undefined ? '' : `${safeLine(cause)}: `;
      return line('failed', `failed after ${formatDuration(view.elapsedMs())}: ${where}${errorLine(error)}`);
    }
    case 'run.cancelled':
      return line(
        'cancelled',
        `cancelled after ${formatDuration(view.elapsedMs())}: ${safeLine(event.data.reason)}`,
      );
    case 'cancel.requested':
      return line('cancelled', `cancel requested${by(event.data.by)}: ${safeLine(event.data.reason)}`);
    case 'signal.received': {
      const { name, by: sender } = event.data;
      return line('running', `received signal ${safeLine(name)}${sender ? ` from ${safeLine(sender)}` : ''}`);
    }
    case 'step.started':
      return path !== undefined && context.isGate(path) ? undefined : line('running', `started${again}`);
    case 'step.completed':
      if (step?.reused) return line('completed', 'ok, reused');
      if (step?.answer) return line('completed', 'ok');
      return line(
        'completed',
        `ok ${formatDuration(step?.durationMs(undefined) ?? 0)}${spent(step)}${again}`,
      );
    case 'step.failed': {
      const optional = path !== undefined && context.isOptional(path) ? ' (optional)' : '';
      return line('failed', `failed${again}${optional}: ${errorLine(event.data.error)}`);
    }
    case 'step.cancelled':
      return line('cancelled', `cancelled: ${safeLine(event.data.reason)}`);
    case 'step.skipped':
      return line('skipped', `skipped: ${skipText(event.data, view)}`);
    case 'step.retrying': {
      const { error, delayMs } = event.data;
      const tried = attemptText(attempt, limit);
      return line(
        'retrying',
        `failed (${tried}), retrying in ${formatDuration(delayMs)}: ${errorLine(error)}`,
      );
    }
    case 'step.interrupted':
      return view.suspension
        ? line('waiting', 'stopped, to be continued')
        : line('retrying', 'was interrupted, running again');
    case 'step.suspended':
      return event.data.on === 'signal'
        ? line('waiting', `waiting for signal ${safeLine(event.data.signal ?? '')}`)
        : undefined;
    case 'step.resumed':
      return line('running', 'resumed');
    case 'timer.set':
      return typeof event.data.timer === 'number'
        ? line('waiting', `sleeping for ${formatDuration(event.data.ms)}`)
        : undefined;
    case 'timer.fired':
      return undefined;
    case 'approval.requested': {
      const command = approveCommand({ runId: event.runId, step: path ?? '', choices: event.data.choices });
      return line(
        'waiting',
        `waiting for approval: ${safeLine(event.data.message)} (${command}${context.commandSuffix ?? ''})`,
      );
    }
    case 'approval.given':
      return line('running', `answered: ${answerText(event.data)}`);
    case 'step.paused': {
      const { delayMs, reason } = event.data;
      return line('waiting', `pausing for ${formatDuration(delayMs)}: ${safeLine(reason)}`);
    }
    case 'fanout.expanded':
      return line('running', fanOutText(event.data));
    case 'selection.made':
      return line('completed', selectionText(event.data));
    case 'workspace.saved':
      return event.data.files === 0
        ? undefined
        : line(
            'running',
            `saved ${changesText(event.data)} on ${safeLine(step?.work.workspace?.branch ?? '')}`,
          );
    case 'session.started':
      return line('running', sessionStartText(event.data));
    case 'session.ended':
      return sessionLine(event.data, line);
    case 'landing.started':
      return line('running', `landing ${safeLine(event.data.branch)} on ${safeLine(event.data.onto)}`);
    case 'landing.ended':
      return line(landed.has(event.data.outcome) ? 'completed' : 'failed', landingText(event.data));
    case 'landing.delivered':
      return line('completed', deliveredText(event.data));
    case 'landing.parked':
      return line('waiting', parkedText(event.data));
    case 'work.checked':
      return event.data.rework === undefined ? undefined : line('retrying', checkedText(event.data));
    case 'transition.taken':
      return line('running', transitionText(event.data));
    case 'workspace.created':
    case 'session.named':
      return undefined;
  }
}

const landed: ReadonlySet<string> = new Set(['landed', 'nothing-to-land']);

/** The end of the step follows, so a session gets a line only if something was denied or it reached a limit. */
function sessionLine(
  { outcome, denials = [] }: EventOf<'session.ended'>['data'],
  line: (status: StatusWord, text: string) => EventLine,
): EventLine | undefined {
  const denied = new Set(
    denials.map(({ tool, lineToAdd }) => safeLine(lineToAdd ? `${tool} (to allow it: ${lineToAdd})` : tool)),
  );
  if (denied.size > 0) return line('waiting', `was denied ${[...denied].join(', ')}`);
  return outcome === 'limit' ? line('waiting', 'reached a limit of its agent') : undefined;
}

const spent = (step: StepProgress | undefined): string => {
  const text = step ? costText(step.spent) : '';
  return text === '' ? '' : `, ${text}`;
};

const by = (who: string | undefined): string => (who ? ` by ${safeLine(who)}` : '');

/** Short text of an event for the history. The view truncates long values. */
export function eventNote(event: HistoryEvent): string {
  switch (event.type) {
    case 'run.started': {
      const { workflow, input, forkedFrom } = event.data;
      const origin = forkedFrom ? `, forked from ${forkedFrom.run} at ${forkedFrom.step}` : '';
      return safeLine(`${workflow}${isEmpty(input) ? '' : ` ${short(input)}`}${origin}`);
    }
    case 'run.resumed': {
      const again = stepsToRunAgain(event.data);
      return again.length > 0
        ? safeLine(`${count(again.length, 'step')} to run again: ${again.join(', ')}`)
        : '';
    }
    case 'run.completed':
    case 'step.completed':
      return event.data.output === null ? '' : short(event.data.output);
    case 'run.failed':
      return `${event.data.step ? `${safeLine(event.data.step)}: ` : ''}${errorLine(event.data.error)}`;
    case 'step.failed':
      return errorLine(event.data.error);
    case 'run.suspended':
    case 'run.cancelled':
    case 'step.cancelled':
      return safeLine(event.data.reason);
    case 'cancel.requested':
      return safeLine(event.data.by ? `${event.data.reason} (by ${event.data.by})` : event.data.reason);
    case 'step.started':
      return event.data.input === undefined || isEmpty(event.data.input) ? '' : short(event.data.input);
    case 'step.skipped':
      return safeLine(event.data.because ? `${event.data.reason}: ${event.data.because}` : event.data.reason);
    case 'step.retrying':
      return `in ${formatDuration(event.data.delayMs)}: ${errorLine(event.data.error)}`;
    case 'step.interrupted':
    case 'step.resumed':
      return '';
    case 'step.suspended':
      return safeLine(event.data.signal ? `on ${event.data.on} ${event.data.signal}` : `on ${event.data.on}`);
    case 'timer.set':
      return `${timerName(event.data.timer)} ${formatDuration(event.data.ms)}`;
    case 'timer.fired':
      return timerName(event.data.timer);
    case 'approval.requested':
      return safeLine(`${event.data.message} (${event.data.choices.join(', ')})`);
    case 'approval.given':
      return answerText(event.data);
    case 'step.paused':
      return `for ${formatDuration(event.data.delayMs)}: ${safeLine(event.data.reason)}`;
    case 'fanout.expanded':
      return fanOutText(event.data);
    case 'selection.made':
      return selectionText(event.data);
    case 'workspace.created':
      return safeLine(`${event.data.path} on ${event.data.branch}`);
    case 'workspace.saved':
      return `${changesText(event.data)}, ${event.data.commit.slice(0, 10)}`;
    case 'session.started': {
      const { agent, kind, sessionId, resumes } = event.data;
      return safeLine(`${agent} (${kind})${resumes ? ' resumed' : ''}${sessionId ? ` ${sessionId}` : ''}`);
    }
    case 'session.named':
      return safeLine(event.data.sessionId);
    case 'session.ended': {
      const { outcome, usage, denials = [] } = event.data;
      const denied = denials.map(({ tool }) => `, denied ${safeLine(tool)}`).join('');
      return `${outcome}, ${spendingText(sessionSpending(usage))}${denied}`;
    }
    case 'landing.started':
      return safeLine(`${event.data.branch} onto ${event.data.onto}`);
    case 'landing.ended':
      return landingText(event.data);
    case 'landing.delivered':
      return deliveredText(event.data);
    case 'landing.parked':
      return parkedText(event.data);
    case 'work.checked':
      return checkedText(event.data);
    case 'transition.taken':
      return transitionText(event.data);
    case 'signal.received': {
      const { name, payload, by } = event.data;
      return safeLine(`${name}${payload === null ? '' : ` ${short(payload)}`}${by ? ` (by ${by})` : ''}`);
    }
  }
}

const timerName = (timer: number | string): string => (typeof timer === 'number' ? `sleep ${timer}` : timer);

const isEmpty = (value: Json): boolean =>
  value === null || (typeof value === 'object' && Object.keys(value).length === 0);

const longest = 500;
const short = (value: Json): string => safeLine(JSON.stringify(value).slice(0, longest));
