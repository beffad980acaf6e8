import type { NewEvent } from '../core/events.ts';
import { formatDuration } from '../core/time.ts';
import type { InboxEntry } from '../store/port.ts';
import type { Message, TimerName } from './messages.ts';
import type { Question } from './run/function-step.ts';
import { endEvent, type StepEnd } from './run/messages.ts';
import { fanOutOutput } from './run/result.ts';
import { placeOf } from './state/graph.ts';
import type { RunState } from './state/run-state.ts';
import type { NodeState } from './state/step-state.ts';
import type { WorkNote } from './step/contract.ts';

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
