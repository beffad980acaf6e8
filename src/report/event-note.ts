import type { HistoryEvent } from '../core/events.ts';
import type { Json } from '../core/json.ts';
import { formatDuration } from '../core/time.ts';
import { answerText, errorLine, stepsToRunAgain } from '../terminal/words.ts';
import { sessionSpending, spendingText } from '../view/cost.ts';
import { safeLine } from '../view/safe-text.ts';
import { count } from './count.ts';
import {
  changesText,
  fanOutText,
  landingText,
  parkedText,
  selectionText,
  transitionText,
} from './work-words.ts';

/** What an event says, in a few words; long values are for the view to cut. */
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
      return safeLine(`${agent} (${kind})${resumes ? ' goes on' : ''}${sessionId ? ` ${sessionId}` : ''}`);
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
    case 'landing.parked':
      return parkedText(event.data);
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
