import {
  type ErrorData,
  type EventOf,
  formatDuration,
  type Json,
  type NewEvent,
  stoppedBy,
  toEpochMs,
  toErrorData,
} from '../../core/index.ts';
import { isFlat, type LaneRef } from '../../effects/index.ts';
import type { InboxEntry } from '../../store/index.ts';
import type { RetryRule, SpendingLimit } from '../../workflow/index.ts';
import { envelopeOf, hasInside } from '../state/graph.ts';
import type { RunState } from '../state/run-state.ts';
import type { ApprovalAnswer, DurableTimer, NodeState } from '../state/step-state.ts';
import type { WorkNote } from '../step/contract.ts';
import type { FunctionQuestion } from './function-step.ts';
import { fanOutOutput } from './result.ts';

/** Purpose of a timer of a step. */
type TimerName = DurableTimer | 'attempt' | 'step';

/** A message to the engine lane of a run. Everything that happens in a run reaches its engine lane as a message. */
export type LoopMessage =
  | {
      readonly kind: 'ended';
      readonly node: NodeState;
      readonly end: StepEnd;
      /** Notes to record together with the end. */
      readonly notes?: readonly WorkNote[] | undefined;
    }
  | { readonly kind: 'asked'; readonly node: NodeState; readonly questions: readonly FunctionQuestion[] }
  /** Notes to record. The sender waits for the receipt. */
  | {
      readonly kind: 'noted';
      readonly node: NodeState;
      readonly notes: readonly WorkNote[];
      readonly receipt: string;
    }
  | { readonly kind: 'fired'; readonly node: NodeState; readonly timer: TimerName }
  | { readonly kind: 'inbox'; readonly entries: readonly InboxEntry[] }
  | { readonly kind: 'interrupted'; readonly reason: string }
  | { readonly kind: 'suspend'; readonly reason: string }
  | { readonly kind: 'over-budget'; readonly budgetMs: number }
  /** Another process owns the run now. */
  | { readonly kind: 'lost' }
  /** A helper lane of the engine failed. */
  | { readonly kind: 'broken'; readonly error: unknown };

/** Larger ends are written to the journal at once, so that it knows how much text it holds. */
export const isLastingMessage = (message: LoopMessage): boolean =>
  message.kind === 'ended' && message.notes === undefined && isFlat(message.end);

/** Returns a message as data for tapes, with steps as names instead of references. */
export function describeMessage(message: LoopMessage): unknown {
  if (message.kind === 'broken') return { kind: message.kind, error: toErrorData(message.error) };
  if (!('node' in message)) return message;
  const { node, ...rest } = message;
  if (!('notes' in rest) || !rest.notes) return { unit: node.node.unit, ...rest };
  const notes = rest.notes.map(note => ({ ...note, data: tapedData(note) }));
  return { unit: node.node.unit, ...rest, notes };
}

/** Data of an event for tapes. Omits the result of a session, which is in the recording of the session. */
export function tapedData(event: Pick<NewEvent, 'type' | 'data'>): unknown {
  if (event.type !== 'session.ended') return event.data;
  const { answer: _answer, error: _error, ...data } = event.data as EventOf<'session.ended'>['data'];
  return data;
}

/** Returns the events that follow from a message. A message that arrives too late gives none. */
export function eventsOf(
  state: RunState,
  message: Exclude<LoopMessage, { kind: 'lost' | 'broken' }>,
): readonly NewEvent[] {
  switch (message.kind) {
    case 'ended':
      if (!message.node.active) return [];
      if (isStopped(state, message))
        return [...suspensionBy(state, message.end), ...interruptions(state, message.node)];
      return [
        ...noteEvents(message.node, message.notes ?? []),
        ...(message.end.kind === 'needs-approval'
          ? approvalEvents(message.node, message.end.request)
          : [endEvent(state, message.node, withWorkers(state, { ...message, end: message.end }))]),
      ];
    case 'noted':
      return message.node.active ? noteEvents(message.node, message.notes) : [];
    case 'asked':
      return message.node.active
        ? message.questions.flatMap(question => questionEvents(message.node, question))
        : [];
    case 'fired':
      return firedEvents(message);
    case 'inbox':
      return []; // recorded one entry at a time, because each depends on the state after the one before
    case 'interrupted':
      return state.cancel ? [] : [{ type: 'cancel.requested', data: { reason: message.reason } }];
    case 'suspend':
      return isStopping(state) ? [] : [suspension(message.reason)];
    case 'over-budget':
      return isStopping(state) ? [] : [overBudget(message.budgetMs)];
  }
}

const approvalEvents = (
  { node, attempt }: NodeState,
  data: EventOf<'approval.requested'>['data'],
): readonly NewEvent[] => {
  const envelope = { ...envelopeOf(node), attempt };
  return [
    { type: 'approval.requested', ...envelope, data },
    { type: 'step.suspended', ...envelope, data: { on: 'approval', wait: 0 } },
  ];
};

/** An end that is recorded as one event. */
export type SimpleEnd = Exclude<StepEnd, { kind: 'needs-approval' }>;

/** Adds the results of all copies to the end of a fan-out. */
export function withWorkers(
  state: RunState,
  { node, end }: { readonly node: NodeState; readonly end: SimpleEnd },
): SimpleEnd {
  if (!node.workers || end.kind === 'paused' || end.kind === 'suspended') return end;
  return { ...end, output: fanOutOutput(state, node, node.workers) };
}

function questionEvents({ node, attempt }: NodeState, question: FunctionQuestion): NewEvent[] {
  const envelope = { ...envelopeOf(node), attempt };
  const { wait } = question;
  if (question.on === 'signal') {
    return [{ ...envelope, type: 'step.suspended', data: { on: 'signal', wait, signal: question.signal } }];
  }
  return [
    { ...envelope, type: 'timer.set', data: { timer: wait, ms: question.ms } },
    { ...envelope, type: 'step.suspended', data: { on: 'timer', wait } },
  ];
}

function firedEvents({ node, timer }: Extract<LoopMessage, { kind: 'fired' }>): NewEvent[] {
  if (!node.active || node.timedOut || !isDue(node, timer)) return [];
  return [{ type: 'timer.fired', ...envelopeOf(node.node), attempt: node.attempt, data: { timer } }];
}

function isDue(node: NodeState, timer: TimerName): boolean {
  if (timer === 'attempt') return node.status === 'running';
  // An approval that was answered in time can no longer time out.
  if (timer === 'step') return node.node.step.body.kind !== 'approve' || node.approval?.given === undefined;
  return node.timers?.has(timer) === true;
}

const isStopping = (state: RunState): boolean => state.cancel !== undefined || state.suspended !== undefined;

function suspension(reason: string): NewEvent {
  const by = stoppedBy(reason);
  if (by !== 'budget') return { type: 'run.suspended', data: { by, reason } };
  const hint = 'raise `--budget`; the next worker continues the run';
  const error = { code: 'BUDGET_EXCEEDED', message: reason, hint };
  return { type: 'run.suspended', data: { by, reason, error } };
}

/** Returns the event for an exhausted budget. A higher budget and a resume continue the run. */
export const budgetSuspension = (error: ErrorData, limit: SpendingLimit = {}): NewEvent => ({
  type: 'run.suspended',
  data: { by: 'budget', reason: error.message, limit: { ...limit }, error },
});

const overBudget = (budgetMs: number): NewEvent =>
  budgetSuspension({
    code: 'BUDGET_EXCEEDED',
    message: `the run took longer than its budget of ${formatDuration(budgetMs)}`,
    hint: 'raise `runtime.budget.minutes`, then resume the run',
  });

type EndedMessage = Extract<LoopMessage, { kind: 'ended' }>;

/** Whether the lane ended because the run is suspended. Its step has no end and is continued by a resume. */
const isStopped = (state: RunState, { node, end }: EndedMessage): boolean =>
  end.kind === 'suspended' ||
  (end.kind === 'cancelled' && state.suspended !== undefined && !node.cancelling && !node.timedOut);

/** A step that waits, or whose copies are being judged, is not interrupted: it continues from its state. */
const interruptions = (state: RunState, node: NodeState): readonly NewEvent[] =>
  isAtWork(node) ? [endEvent(state, node, { kind: 'suspended' })] : [];

/** Whether the step itself works, and not its copies, its child workflow or the judge of its copies. */
export const isAtWork = ({ status, node, workers }: NodeState): boolean =>
  status === 'running' && (!hasInside(node) || (node.fanOut !== undefined && workers === undefined));

/** A budget that a lane has exhausted, or a lock that it cannot get, suspends the whole run. */
function suspensionBy(state: RunState, end: StepEnd): readonly NewEvent[] {
  if (isStopping(state)) return [];
  if (end.kind === 'suspended' && end.error?.code === 'LOCK_STALLED')
    return [{ type: 'run.suspended', data: { by: 'lock', reason: end.error.message, error: end.error } }];
  if (end.kind === 'suspended' && end.error) return [budgetSuspension(end.error, end.limit)];
  return [suspension('the session was stopped')];
}

/** Returns the event that follows from a message of another process, or `undefined` if it no longer applies. */
export function inboxEvent(state: RunState, { message }: InboxEntry): NewEvent | undefined {
  switch (message.kind) {
    case 'signal': {
      const { name, payload, by } = message;
      return { type: 'signal.received', data: { name, payload, ...(by ? { by } : {}) } };
    }
    case 'cancel': {
      if (state.cancel) return undefined;
      const { reason, by } = message;
      return { type: 'cancel.requested', data: { reason, ...(by ? { by } : {}) } };
    }
    case 'approval': {
      const { step, choice, by, comment } = message;
      const node = state.at(step);
      if (node?.status !== 'waiting' || !node.approval?.choices.includes(choice)) return undefined;
      const data = { choice, ...(by ? { by } : {}), ...(comment ? { comment } : {}) };
      return { type: 'approval.given', ...envelopeOf(node.node), attempt: node.attempt, data };
    }
  }
}

const noteEvents = ({ node, attempt }: NodeState, notes: readonly WorkNote[]): readonly NewEvent[] =>
  notes.map(note => ({ ...envelopeOf(node), attempt, ...note }) as NewEvent);

/** The end of a step's work. */
export type StepEnd =
  | {
      readonly kind: 'completed';
      readonly output: Json;
      readonly artifacts?: readonly Artifact[] | undefined;
    }
  /** `output` holds the results of the copies of a fan-out. */
  | { readonly kind: 'failed'; readonly error: ErrorData; readonly output?: Json | undefined }
  | { readonly kind: 'cancelled'; readonly reason: string; readonly output?: Json | undefined }
  /** The step resumes its work after a delay. */
  | { readonly kind: 'paused'; readonly reason: string; readonly delayMs: number }
  /**
   * The step continues when the run is resumed. `error` and `limit` describe the budget that it has exhausted, `error` the
   * process that holds a lock that it needs.
   */
  | {
      readonly kind: 'suspended';
      readonly error?: ErrorData | undefined;
      readonly limit?: SpendingLimit | undefined;
    }
  /** The step resumes its work after a person has answered. */
  | { readonly kind: 'needs-approval'; readonly request: EventOf<'approval.requested'>['data'] };

/** A file that a step passes on. Its path is relative to the root of the project. */
export interface Artifact {
  readonly name: string;
  readonly path: string;
}

/** Error of a step that a person rejected. */
export const rejection = ({ by, comment }: Pick<ApprovalAnswer, 'by' | 'comment'>): ErrorData => ({
  code: 'APPROVAL_REJECTED',
  message: `rejected${by ? ` by ${by}` : ''}${comment ? `: ${comment}` : ''}`,
});

/** Returns the event for an end: a failure may lead to a retry, and a cancellation may have been a timeout. */
export function endEvent(state: RunState, node: NodeState, end: SimpleEnd): NewEvent {
  const envelope = { ...envelopeOf(node.node), attempt: node.attempt };
  switch (end.kind) {
    case 'completed': {
      const { output, artifacts } = end;
      const data = { output, ...(artifacts && artifacts.length > 0 ? { artifacts: [...artifacts] } : {}) };
      return { type: 'step.completed', ...envelope, data };
    }
    case 'cancelled': {
      if (node.timedOut) return endEvent(state, node, { kind: 'failed', error: timeoutError(node) });
      return { type: 'step.cancelled', ...envelope, data: { reason: end.reason, ...outputIn(end) } };
    }
    case 'failed': {
      const { error } = end;
      const delayMs = delayBeforeRetry(state, node, error);
      if (delayMs === undefined)
        return { type: 'step.failed', ...envelope, data: { error, ...outputIn(end) } };
      return { type: 'step.retrying', ...envelope, data: { error, delayMs } };
    }
    case 'paused':
      return { type: 'step.paused', ...envelope, data: { reason: end.reason, delayMs: end.delayMs } };
    case 'suspended':
      return { type: 'step.interrupted', ...envelope, data: {} };
  }
}

const outputIn = ({ output }: { readonly output?: Json | undefined }): { output?: Json } =>
  output === undefined ? {} : { output };

function delayBeforeRetry(state: RunState, node: NodeState, error: ErrorData): number | undefined {
  const rule = node.node.fanOut ? undefined : node.node.step.retry;
  const tries = node.attempt - node.attemptsBefore;
  if (!rule || tries >= rule.attempts || node.timedOut === 'step') return undefined;
  if (error.code === 'BUDGET_EXCEEDED') return undefined;
  if (state.scopeOf(node.node.scope).stop || !mayRetry(rule, error)) return undefined;
  return backoff(rule, tries);
}

function mayRetry(rule: RetryRule, error: ErrorData): boolean {
  try {
    return rule.retries?.({ ...error }) ?? true;
  } catch {
    return false;
  }
}

const backoff = ({ backoff: { initialMs, factor, maxMs } }: RetryRule, tries: number): number =>
  Math.min(maxMs, Math.round(initialMs * factor ** (tries - 1)));

function timeoutError({ node, timedOut }: NodeState): ErrorData {
  const { attemptMs, stepMs } = node.step.timeout;
  const limit = timedOut === 'step' ? stepMs : attemptMs;
  return {
    code: 'TIMEOUT',
    message: `${timedOut === 'step' ? 'the step' : 'the attempt'} took longer than ${formatDuration(limit ?? 0)}`,
    hint: 'raise its `timeout`, or look in its log for what it was waiting for',
  };
}

/**
 * Converts a thrown value for history. Keeps only fields that are strings, because a thrown error may contain
 * anything.
 */
export function thrownError(thrown: unknown): ErrorData {
  const { code, message, hint, name, stack } = toErrorData(thrown);
  const fields = { hint, name, stack: typeof stack === 'string' ? withoutEngineFrames(stack) : undefined };
  const texts = Object.entries(fields).filter(([, value]) => typeof value === 'string');
  return { code: code || 'STEP_FAILED', message: String(message), ...Object.fromEntries(texts) };
}

/** Drops the frames of the engine, which are of no use to the reader and differ between code paths. */
function withoutEngineFrames(stack: string): string {
  const lines = stack.split('\n');
  const first = lines.findIndex(line => /^\s+at (async )?(runStepFunction|parseStepValue)\b/.test(line));
  return (first === -1 ? lines : lines.slice(0, first)).join('\n');
}

/** Converts an error thrown by user code that the planner calls: conditions, selectors and templates. */
export function expressionError(what: string, thrown: unknown): ErrorData {
  const { code, message, hint } = toErrorData(thrown);
  const known = code === 'INPUT_INVALID' || code === 'EXPRESSION_FAILED';
  return {
    code: known ? code : 'EXPRESSION_FAILED',
    message: `${what}: ${message}`,
    ...(hint ? { hint } : {}),
  };
}

interface DueTimer {
  readonly timer: TimerName;
  readonly at: number;
}

/**
 * The timers of a run, each a sleeping lane. Which timers exist follows from the state alone, so a resumed run has the
 * same ones with the same deadlines.
 */
export class Timers {
  readonly #lanes = new Map<NodeState, Map<TimerName, LaneRef>>();
  readonly #start: (node: NodeState, due: DueTimer) => LaneRef;

  constructor(start: (node: NodeState, due: DueTimer) => LaneRef) {
    this.#start = start;
  }

  /** Starts missing timers and returns the lanes of timers that are no longer needed. */
  sync(node: NodeState): readonly LaneRef[] {
    const running = this.#lanes.get(node);
    const wanted = timersOf(node);
    if (!running && wanted.length === 0) return [];
    const lanes = running ?? new Map<TimerName, LaneRef>();
    const unwanted = [...lanes].filter(([timer]) => !wanted.some(due => due.timer === timer));
    for (const [timer] of unwanted) lanes.delete(timer);
    for (const due of wanted) if (!lanes.has(due.timer)) lanes.set(due.timer, this.#start(node, due));
    if (lanes.size > 0) this.#lanes.set(node, lanes);
    else this.#lanes.delete(node);
    return unwanted.map(([, lane]) => lane);
  }

  /** Forgets a timer whose lane has ended. */
  forget(node: NodeState, timer: TimerName): void {
    this.#lanes.get(node)?.delete(timer);
  }
}

/** Returns the timers that a step needs, with their deadlines. */
export function timersOf(node: NodeState): readonly DueTimer[] {
  const timeout = node.node.fanOut ? {} : node.node.step.timeout;
  const due: DueTimer[] = [];
  if (!node.active || node.timedOut) return due;
  for (const { timer, setAt, ms } of node.timers?.values() ?? []) {
    if (node.status === 'waiting' || typeof timer === 'number')
      due.push({ timer, at: toEpochMs(setAt) + ms });
  }
  if (timeout.attemptMs !== undefined && node.status === 'running' && node.attemptStartedAt) {
    due.push({ timer: 'attempt', at: toEpochMs(node.attemptStartedAt) + timeout.attemptMs - node.workedMs });
  }
  if (timeout.stepMs !== undefined && node.startedAt)
    due.push({ timer: 'step', at: toEpochMs(node.startedAt) + timeout.stepMs });
  return due;
}
