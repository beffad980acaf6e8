import type { ErrorData } from '../../../core/errors.ts';
import { fenced } from '../commands.ts';

/** What is said to an agent whose session was cut off. */
export const goOnPrompt =
  'You were interrupted. Look at what you have already done in this folder, and go on where you stopped.';

const longestQuote = 4000;

/** The prompt of an attempt: what the step says, byte for byte, and then why the last attempt failed. */
export const attemptPrompt = (prompt: string, lastError: ErrorData | undefined): string =>
  lastError === undefined
    ? prompt
    : `${prompt}\n\n## The last attempt failed\n\nThis has been tried before, and ended with this error (${lastError.code}):\n\n${quoted(lastError.message)}\n\nYou begin again from where it began. Avoid that error.`;

export interface FailedCheck {
  /** The command as it was written. */
  readonly text: string;
  readonly exitCode?: number | undefined;
  /** The end of what it printed. */
  readonly tail: string;
}

/** Tells an agent that what it did does not pass. */
export function checkPrompt({ text, exitCode, tail }: FailedCheck): string {
  const how = exitCode === undefined ? 'did not run to its end' : `exited with code ${exitCode}`;
  const output =
    tail.trim() === '' ? 'It printed nothing.' : `The end of its output:\n\n${quoted(tail.trim())}`;
  return `The check of your work does not pass. This command ${how}:\n\n${quoted(text)}\n\n${output}\n\nFind the cause and mend it, without weakening the check. Then end as you were asked to.`;
}

/** Tells an agent that its answer cannot be used. */
export const answerPrompt = (error: ErrorData): string =>
  `Your answer cannot be used:\n\n${quoted(error.message)}\n\nKeep the work that you have done, and answer again in the form that you were asked for.`;

/** For agents that forget: everything again, and what is new. */
export const toldAgain = (prompt: string, news: string): string =>
  `${prompt}\n\n## What has happened since\n\nYou have worked on this before, in this folder.\n\n${news}`;

/** The end of a long text is what matters. */
const quoted = (text: string): string =>
  fenced(text.length > longestQuote ? `…${text.slice(-longestQuote)}` : text);
