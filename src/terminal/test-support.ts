import type { ErrorData } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/events.ts';
import type { Json } from '../core/json.ts';
import { toTimestamp } from '../core/time.ts';

/** Noon in UTC. */
export const noon = Date.UTC(2026, 0, 15, 12);

/** Builds a history from events, each with its time in milliseconds after noon. */
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

/** The event for one copy of its step. */
export const ofWorker = (worker: number, event: NewEvent): NewEvent => ({ ...event, worker });

export const expanded = (step: string, total: number, items?: readonly Json[]): NewEvent => ({
  type: 'fanout.expanded',
  step,
  attempt: 1,
  data: { kind: items ? 'matrix' : 'concurrency', total, ...(items ? { items: [...items] } : {}) },
});

const workspaceCreated = (step: string, name = step): NewEvent => ({
  type: 'workspace.created',
  step,
  attempt: 1,
  data: { path: `.reprise/workspaces/${name}`, branch: `reprise/${name}`, base: 'b'.repeat(40) },
});

export const workspaceSaved = (step: string, commit = 'c'.repeat(40)): NewEvent => ({
  type: 'workspace.saved',
  step,
  attempt: 1,
  data: { commit, commits: 1, files: 2, insertions: 10, deletions: 3 },
});

export const sessionStarted = (step: string, kind = 'claude', sessionId?: string): NewEvent => ({
  type: 'session.started',
  step,
  attempt: 1,
  data: { agent: 'coder', kind, number: 0, ...(sessionId ? { sessionId } : {}) },
});

type SessionEnd = Extract<NewEvent, { type: 'session.ended' }>['data'];

export const sessionEnded = (
  step: string,
  costUsd: number | null,
  more: Partial<SessionEnd> = {},
): NewEvent => ({
  type: 'session.ended',
  step,
  attempt: 1,
  data: {
    outcome: 'ok',
    usage: { inputTokens: 1000, outputTokens: 500, cachedTokens: 0, costUsd },
    ...more,
  },
});

export const selected = (step: string, winner: number, scores: readonly number[]): NewEvent => ({
  type: 'selection.made',
  step,
  attempt: 1,
  data: {
    winner,
    by: 'rank',
    candidates: scores.map((score, worker) => ({ worker, passed: true, score })),
  },
});

/** Three running copies of `fix`, each with an agent in its own workspace. */
export const threeWorkers: readonly (readonly [number, NewEvent])[] = [
  [0, runStarted('repair', ['fix', 'lint'])],
  [0, started('fix')],
  [0, expanded('fix', 3)],
  ...[0, 1, 2].flatMap((worker): (readonly [number, NewEvent])[] => [
    [100, ofWorker(worker, started('fix'))],
    [100, ofWorker(worker, workspaceCreated('fix', `fix-${worker}`))],
    [200, ofWorker(worker, sessionStarted('fix', 'claude', `id-${worker}`))],
  ]),
];
