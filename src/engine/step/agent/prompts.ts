import type { ErrorData } from '../../../core/index.ts';
import { fenced } from '../commands.ts';

/** Prompt for resuming an interrupted session. */
export const goOnPrompt =
  'You were interrupted. Review what you have already done in this folder, then continue where you stopped.';

const maxQuote = 4000;

/** Returns the prompt of the step, unchanged, followed by the error of the last attempt. */
export const attemptPrompt = (prompt: string, lastError: ErrorData | undefined): string =>
  lastError === undefined
    ? prompt
    : `${prompt}\n\n## The last attempt failed\n\nThe last attempt at this task failed with this error (${lastError.code}):\n\n${quoted(lastError.message)}\n\nYou start again from the same state as that attempt. Avoid this error.`;

export interface FailedCheck {
  /** Command as written in the definition. */
  readonly text: string;
  readonly exitCode?: number | undefined;
  /** End of the command's output. */
  readonly tail: string;
}

/** Returns the prompt for work that fails a check. */
export function checkPrompt({ text, exitCode, tail }: FailedCheck): string {
  const how = exitCode === undefined ? 'did not finish' : `exited with code ${exitCode}`;
  const output =
    tail.trim() === '' ? 'It printed nothing.' : `The end of its output:\n\n${quoted(tail.trim())}`;
  return `Your work does not pass its check. This command ${how}:\n\n${quoted(text)}\n\n${output}\n\nFind the cause and fix it without weakening the check. Then finish as you were asked to.`;
}

/** Returns the prompt for an invalid answer. */
export const answerPrompt = (error: ErrorData): string =>
  `Your answer cannot be used:\n\n${quoted(error.message)}\n\nKeep the work that you have done, and answer again in the requested format.`;

/** Repeats the full prompt before the news, for agents that cannot resume a session. */
export const repeatedPrompt = (prompt: string, news: string): string =>
  `${prompt}\n\n## What has happened since\n\nYou have already worked on this task in this folder.\n\n${news}`;

/** Keeps the end of long text, which matters most. */
const quoted = (text: string): string => fenced(text.length > maxQuote ? `…${text.slice(-maxQuote)}` : text);
