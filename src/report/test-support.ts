import type { ErrorData } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/event.ts';
import { toTimestamp } from '../core/time.ts';

/** Noon, so that no time zone of a test makes it another day. */
export const noon = Date.UTC(2026, 0, 15, 12);

/** A history written by hand: milliseconds after noon, and what happened then. */
export const historyOf = (entries: readonly (readonly [ms: number, event: NewEvent])[]): HistoryEvent[] =>
  entries.map(
    ([ms, event], index) =>
      ({ ...event, seq: index + 1, runId: 'k7x2', at: toTimestamp(noon + ms) }) as HistoryEvent,
  );

export const runStarted = (workflow: string, steps: readonly string[]): NewEvent => ({
  type: 'run.started',
  data: { format: 1, workflow, input: {}, steps: [...steps] },
});

export const started = (step: string, attempt = 1): NewEvent => ({
  type: 'step.started',
  step,
  attempt,
  data: { fingerprint: 'f' },
});

export const completed = (step: string, attempt = 1): NewEvent => ({
  type: 'step.completed',
  step,
  attempt,
  data: { output: null },
});

export const exitedWith = (code: number, output = ''): ErrorData => ({
  code: 'EXIT_NONZERO',
  message: `exited with code ${code}${output === '' ? '' : `\n${output}`}`,
  exitCode: code,
});

export const failed = (step: string, error: ErrorData = exitedWith(1), attempt = 1): NewEvent => ({
  type: 'step.failed',
  step,
  attempt,
  data: { error },
});

export const retrying = (step: string, delayMs: number, attempt = 1): NewEvent => ({
  type: 'step.retrying',
  step,
  attempt,
  data: { error: exitedWith(1), delayMs },
});

export const skipped = (step: string, because?: string): NewEvent => ({
  type: 'step.skipped',
  step,
  data: { fingerprint: 'f', ...(because ? { reason: 'dependency', because } : { reason: 'condition' }) },
});

export const cancelled = (step: string, reason: string): NewEvent => ({
  type: 'step.cancelled',
  step,
  attempt: 1,
  data: { reason },
});

export const approvalRequested = (step: string, message: string): NewEvent => ({
  type: 'approval.requested',
  step,
  attempt: 1,
  data: { message, choices: ['approve', 'reject'] },
});

export const suspended = (step: string, signal?: string): NewEvent => ({
  type: 'step.suspended',
  step,
  attempt: 1,
  data: signal === undefined ? { on: 'approval', wait: 0 } : { on: 'signal', wait: 0, signal },
});

export const runCompleted: NewEvent = { type: 'run.completed', data: { output: null } };

export const runFailed = (step: string, error: ErrorData = exitedWith(1)): NewEvent => ({
  type: 'run.failed',
  data: { error, step },
});
