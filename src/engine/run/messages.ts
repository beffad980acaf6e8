import { type ErrorData, toErrorData } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import { formatDuration } from '../../core/time.ts';
import type { RetryRule } from '../../workflow/model.ts';
import { placeOf } from '../state/graph.ts';
import type { RunState } from '../state/run-state.ts';
import type { NodeState } from '../state/step-state.ts';

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
