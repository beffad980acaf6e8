import { isJsonObject, type Json } from '../core/json.ts';
import type { AppServerState } from './codex/app-server.ts';
import { itemEvents } from './codex/items.ts';
import { failed, protocolError, reportedFailure } from './driver/failures.ts';
import { event, type ProtocolContext, type Step, verdict } from './driver/protocol.ts';
import { at, numberAt, own, rawEvent, textAt } from './json-line.ts';
import { resetFromEpoch } from './limits.ts';
import type { RpcMessage } from './rpc.ts';
import type { Usage } from './session.ts';
import { usageSince } from './usage.ts';

interface Taken {
  readonly message: Extract<RpcMessage, { kind: 'notification' }>;
  readonly line: string;
  readonly context: ProtocolContext;
}

const noise =
  /^(thread\/(started|status\/changed|name\/updated|settings\/updated)|turn\/(diff|plan)\/updated|item\/.*([dD]elta|summaryPartAdded|progress)$|serverRequest\/resolved|configWarning|remoteControl\/|mcpServer\/|skills\/|account\/updated)/;

/** What the server tells without being asked. */
export function appServerNotification(state: AppServerState, taken: Taken): Step<AppServerState> {
  const { params, method } = taken.message;
  switch (method) {
    case 'turn/started':
      return { state: { ...state, turnId: textAt(params, 'turn', 'id') ?? state.turnId }, signals: [] };
    case 'item/started':
    case 'item/completed':
      return takeItem(state, taken);
    case 'thread/tokenUsage/updated':
      return takeUsage(state, params);
    case 'account/rateLimits/updated':
      return { state: { ...state, resetsAt: resetOf(params) ?? state.resetsAt }, signals: [] };
    case 'error': {
      const willRetry = at(params, 'willRetry') === true;
      return { state, signals: [event(willRetry ? retryOf(params) : rawEvent(taken.line))] };
    }
    case 'turn/completed':
      return { state, signals: [turnVerdict(state, at(params, 'turn'), taken.context.now())] };
    default:
      return { state, signals: noise.test(method) ? [] : [event(rawEvent(taken.line))] };
  }
}

function retryOf(params: Json) {
  const message = textAt(params, 'error', 'message') ?? 'the model did not answer';
  const attempt = Number(/reconnecting\D*(\d+)/i.exec(message)?.[1] ?? 1);
  return { type: 'retry', attempt, reason: textAt(params, 'error', 'additionalDetails') ?? message } as const;
}

function takeItem(state: AppServerState, { message, line }: Taken): Step<AppServerState> {
  const item = at(message.params, 'item');
  const id = textAt(item, 'id') ?? '';
  const isOver = message.method === 'item/completed';
  const { events, open } = itemEvents({ item, isOver, open: state.open, line });
  const text = isOver && textAt(item, 'type') === 'agentMessage' ? textAt(item, 'text') : undefined;
  const { [id]: _, ...others } = state.items;
  const items = isOver || item === undefined ? others : { ...others, [id]: item };
  return { state: { ...state, open, items, text: text ?? state.text }, signals: events.map(event) };
}

/**
 * Both numbers are given: all of the thread, and the last request. The first time, only the last one is ours. A
 * thread that is resumed begins with what its turns before have used.
 */
function takeUsage(state: AppServerState, params: Json): Step<AppServerState> {
  const total = usageOf(at(params, 'tokenUsage', 'total'));
  const turnId = textAt(params, 'turnId');
  if (turnId !== undefined && turnId !== state.turnId)
    return { state: { ...state, used: total }, signals: [] };
  const before = state.used ?? usageSince(usageOf(at(params, 'tokenUsage', 'last')), total);
  return {
    state: { ...state, used: total },
    signals: [event({ type: 'usage', ...usageSince(before, total) })],
  };
}

const usageOf = (counts: Json | undefined): Usage => ({
  inputTokens: numberAt(counts, 'inputTokens') ?? 0,
  outputTokens: numberAt(counts, 'outputTokens') ?? 0,
  cachedTokens: numberAt(counts, 'cachedInputTokens') ?? 0,
  costUsd: null,
});

/** The later of the two windows is the one that a full limit waits for. */
function resetOf(params: Json): string | undefined {
  const resets = ['primary', 'secondary'].flatMap(window => {
    const isFull = (numberAt(params, 'rateLimits', window, 'usedPercent') ?? 0) >= 100;
    return isFull ? (numberAt(params, 'rateLimits', window, 'resetsAt') ?? []) : [];
  });
  return resets.length > 0 ? resetFromEpoch(Math.max(...resets)) : undefined;
}

/** The end of a turn as the server tells it. */
function turnVerdict(state: AppServerState, turn: Json | undefined, now: number) {
  switch (textAt(turn, 'status')) {
    case 'completed':
      return verdict({ kind: 'ok', text: state.text });
    case 'interrupted':
      return verdict({ kind: 'stopped' });
    case 'failed': {
      const message = textAt(turn, 'error', 'message') ?? '';
      const status = statusOf(at(turn, 'error', 'codexErrorInfo'));
      return verdict(reportedFailure({ kind: 'codex', message, status, resetsAt: state.resetsAt, now }));
    }
    default:
      return verdict(failed(protocolError(`codex ended a turn as \`${textAt(turn, 'status')}\``)));
  }
}

const statuses: Readonly<Record<string, number>> = {
  unauthorized: 401,
  usageLimitExceeded: 429,
  rateLimitExceeded: 429,
  internalServerError: 500,
  serverOverloaded: 503,
};

/** The status of the model's answer: a number inside of the kind of failure, or known from its kind. */
function statusOf(info: Json | undefined): number | undefined {
  if (typeof info === 'string') return own(statuses, info);
  if (!isJsonObject(info)) return undefined;
  return Object.values(info).flatMap(detail => numberAt(detail, 'httpStatusCode') ?? [])[0];
}
