import type { AgentEvent } from '../../agents/session.ts';
import { longestOutput } from '../work/session-log.ts';
import type { Recording } from './session-file.ts';

/** Where tools say what went wrong. */
const keptOfEnd = 200;

/** What is left out must be worth the words that say so. */
const leastLeftOut = 200;

/**
 * A recording for a case, without the middle of what tools printed: a replay shows none of it. What scripts of steps
 * printed stays whole, because it is their output.
 */
export function withShownOutputs(recording: Recording): Recording {
  if (recording.kind !== 'session') return recording;
  const lines = recording.lines.map(line =>
    line.kind === 'event' ? { ...line, event: withShownOutput(line.event) } : line,
  );
  return { ...recording, lines };
}

/** For a case that does not show thoughts: what it records itself has none either. */
export const withoutThoughts = (recording: Recording): Recording =>
  recording.kind === 'session'
    ? {
        ...recording,
        lines: recording.lines.filter(line => line.kind !== 'event' || line.event.type !== 'thought'),
      }
    : recording;

function withShownOutput(event: AgentEvent): AgentEvent {
  if (event.type !== 'tool-end' || event.output === undefined) return event;
  const { output } = event;
  const leftOut = output.length - longestOutput - keptOfEnd;
  if (leftOut < leastLeftOut) return event;
  const [start, end] = [output.slice(0, longestOutput), output.slice(-keptOfEnd)];
  return { ...event, output: `${start}\n[… ${leftOut} characters …]\n${end}` };
}
