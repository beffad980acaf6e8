import { type ErrorData, toErrorData } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import { formatDuration, toEpochMs } from '../../core/time.ts';
import { isFlat } from '../../effects/effect.ts';
import type { LaneRef } from '../../effects/world.ts';
import type { InboxEntry } from '../../store/port.ts';
import type { RetryRule } from '../../workflow/model.ts';
import { placeOf } from '../state/graph.ts';
import type { RunState } from '../state/run-state.ts';
import type { DurableTimer, NodeState } from '../state/step-state.ts';
import type { WorkNote } from '../step/contract.ts';
import type { Question } from './function-step.ts';
import { fanOutOutput } from './result.ts';

/** What a timer of a step is for. */
type TimerName = DurableTimer | 'attempt' | 'step';

/** What lanes tell the engine lane of their run. Everything that happens comes through here. */
export type Message =
  | {
      readonly kind: 'ended';
      readonly node: NodeState;
      readonly end: StepEnd;
      /** What is to be remembered together with the end. */
      readonly notes?: readonly WorkNote[] | undefined;
    }
  | { readonly kind: 'asked'; readonly node: NodeState; readonly questions: readonly Question[] }
  /** Something of its work is to be remembered; whoever sent it waits for the receipt. */
  | {
      readonly kind: 'noted';
      readonly node: NodeState;
      readonly notes: readonly WorkNote[];
      readonly receipt: string;
    }
  | { readonly kind: 'fired'; readonly node: NodeState; readonly timer: TimerName }
  | { readonly kind: 'inbox'; readonly entries: readonly InboxEntry[] }
  | { readonly kind: 'interrupted'; readonly reason: string }
  | { readonly kind: 'over-budget'; readonly budgetMs: number }
  /** The run has another owner. */
  | { readonly kind: 'lost' }
  /** A lane that serves the engine cannot go on. */
  | { readonly kind: 'broken'; readonly error: unknown };

/** An output that is an object goes to functions, which may change it. */
export const isLastingMessage = (message: Message): boolean =>
  message.kind === 'ended' && message.notes === undefined && isFlat(message.end);

/** A message as data, for tapes: steps are named, not held. */
export function describeMessage(message: Message): unknown {
  if (message.kind === 'broken') return { kind: message.kind, error: toErrorData(message.error) };
  if (!('node' in message)) return message;
  const { node, ...rest } = message;
  return { unit: node.node.unit, ...rest };
}

/** What a message means for history. One that comes too late to mean anything gives no event. */
export function eventsOf(
  state: RunState,
  message: Exclude<Message, { kind: 'lost' | 'broken' }>,
): readonly NewEvent[] {
  switch (message.kind) {
    case 'ended':
      if (!message.node.active) return [];
      return [
        ...noteEvents(message.node, message.notes ?? []),
        endEvent(state, message.node, withWorkers(state, message)),
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
      return []; // entry by entry, since each depends on what the one before did
    case 'interrupted':
      return state.cancel ? [] : [{ type: 'cancel.requested', data: { reason: message.reason } }];
    case 'over-budget':
      return state.cancel ? [] : [overBudget(message.budgetMs)];
  }
}

/** A fan-out always ends with what all of its workers came to. */
export function withWorkers(
  state: RunState,
  { node, end }: { readonly node: NodeState; readonly end: StepEnd },
): StepEnd {
  if (!node.workers || end.kind === 'paused') return end;
  return { ...end, output: fanOutOutput(state, node, node.workers) };
}

function questionEvents({ node, attempt }: NodeState, question: Question): NewEvent[] {
  const envelope = { ...placeOf(node), attempt };
  const { wait } = question;
  if (question.on === 'signal') {
    return [{ ...envelope, type: 'step.suspended', data: { on: 'signal', wait, signal: question.signal } }];
  }
  return [
    { ...envelope, type: 'timer.set', data: { timer: wait, ms: question.ms } },
    { ...envelope, type: 'step.suspended', data: { on: 'timer', wait } },
  ];
}

function firedEvents({ node, timer }: Extract<Message, { kind: 'fired' }>): NewEvent[] {
  if (!node.active || node.timedOut || !isDue(node, timer)) return [];
  return [{ type: 'timer.fired', ...placeOf(node.node), attempt: node.attempt, data: { timer } }];
}

function isDue(node: NodeState, timer: TimerName): boolean {
  if (timer === 'attempt') return node.status === 'running';
  // A gate that was answered in time is as good as ended.
  if (timer === 'step') return node.approval?.given === undefined;
  return node.timers?.has(timer) === true;
}

const overBudget = (budgetMs: number): NewEvent => ({
  type: 'cancel.requested',
  data: {
    reason: 'budget',
    error: {
      code: 'BUDGET_EXCEEDED',
      message: `the run took longer than its budget of ${formatDuration(budgetMs)}`,
      hint: 'raise runtime.budget.minutes, then resume the run',
    },
  },
});

/** What a message of another process means; `undefined` if it means nothing any more. */
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
      return { type: 'approval.given', ...placeOf(node.node), attempt: node.attempt, data };
    }
  }
}

const noteEvents = ({ node, attempt }: NodeState, notes: readonly WorkNote[]): readonly NewEvent[] =>
  notes.map(note => ({ ...placeOf(node), attempt, ...note }) as NewEvent);

/** How the work of a step ended. */
export type StepEnd =
  | {
      readonly kind: 'completed';
      readonly output: Json;
      readonly artifacts?: readonly Artifact[] | undefined;
    }
  /** `output`: what the workers of a fan-out came to. */
  | { readonly kind: 'failed'; readonly error: ErrorData; readonly output?: Json | undefined }
  | { readonly kind: 'cancelled'; readonly reason: string; readonly output?: Json | undefined }
  /** It goes on where it is after a while. */
  | { readonly kind: 'paused'; readonly reason: string; readonly delayMs: number };

/** A file that a step hands on; its path is relative to the project's root. */
export interface Artifact {
  readonly name: string;
  readonly path: string;
}

/** The event that an end becomes: a failure may be tried again, and a cancellation may have been a timeout. */
export function endEvent(state: RunState, node: NodeState, end: StepEnd): NewEvent {
  const envelope = { ...placeOf(node.node), attempt: node.attempt };
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
    return rule.retries?.(error) ?? true;
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
    hint: 'raise its timeout, or find out what it was waiting for in its log',
  };
}

/** What a function threw, as history can keep it: anything at all may stand in the fields of an error. */
export function thrownError(thrown: unknown): ErrorData {
  const { code, message, hint, name, stack } = toErrorData(thrown);
  const fields = { hint, name, stack: typeof stack === 'string' ? aboveTheEngine(stack) : undefined };
  const texts = Object.entries(fields).filter(([, value]) => typeof value === 'string');
  return { code: code || 'STEP_FAILED', message: String(message), ...Object.fromEntries(texts) };
}

/** From where the engine called is nobody's concern, and not the same on every path through it. */
function aboveTheEngine(stack: string): string {
  const lines = stack.split('\n');
  const first = lines.findIndex(line => /[/\\]function-step\.[jt]s/.test(line));
  return (first === -1 ? lines : lines.slice(0, first)).join('\n');
}

/** For what a person wrote and the planner calls: conditions, selectors, templates. */
export function expressionError(what: string, thrown: unknown): ErrorData {
  const { code, message, hint } = toErrorData(thrown);
  const known = code === 'INPUT_INVALID' || code === 'EXPRESSION_FAILED';
  return {
    code: known ? code : 'EXPRESSION_FAILED',
    message: `${what}: ${message}`,
    ...(hint ? { hint } : {}),
  };
}

interface Due {
  readonly timer: TimerName;
  readonly at: number;
}

/**
 * The timers of a run: each is a lane that sleeps. Which ones there should be follows from the state alone, so a
 * resumed run has the same ones, with the same moments.
 */
export class Timers {
  readonly #lanes = new Map<NodeState, Map<TimerName, LaneRef>>();
  readonly #start: (node: NodeState, due: Due) => LaneRef;

  constructor(start: (node: NodeState, due: Due) => LaneRef) {
    this.#start = start;
  }

  /** Starts what is missing; gives back the lanes that are no longer wanted. */
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

  /** The lane has ended by itself. */
  forget(node: NodeState, timer: TimerName): void {
    this.#lanes.get(node)?.delete(timer);
  }
}

/** What the step waits for the clock to say, and when. */
export function timersOf(node: NodeState): readonly Due[] {
  const timeout = node.node.fanOut ? {} : node.node.step.timeout;
  const due: Due[] = [];
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
