import { isJsonObject, type Json, RepriseError } from '../../core/index.ts';
import { failed, protocolError, reportedFailure, resetFromEpoch } from '../driver/failures.ts';
import { processSessions } from '../driver/process-session.ts';
import { commandOf } from '../driver/program.ts';
import {
  type Adapter,
  at,
  event,
  isAgentMessage,
  type Launch,
  numberAt,
  own,
  type Protocol,
  type ProtocolContext,
  parseRpc,
  type RpcError,
  type RpcId,
  type RpcMessage,
  rawEvent,
  rpcErrorText,
  type Step,
  send,
  textAt,
  verdict,
} from '../driver/protocol.ts';
import { continuePrompt, wholePrompt } from '../driver/result.ts';
import { decisionOf, type PermissionDecision, permissionSignals } from '../permissions/permissions.ts';
import { noUsage, type SessionRequest, type Usage, usageSince } from '../session.ts';
import { appServerArguments, unsupportedArgument } from './arguments.ts';
import { approvalPolicyOf, codexTool, commandText, itemEvents, refuseFork, sandboxOf } from './items.ts';

interface ReceivedNotification {
  readonly message: Extract<RpcMessage, { kind: 'notification' }>;
  readonly line: string;
  readonly context: ProtocolContext;
}

const noise =
  /^(thread\/(started|status\/changed|name\/updated|settings\/updated)|turn\/(diff|plan)\/updated|item\/.*([dD]elta|summaryPartAdded|progress)$|serverRequest\/resolved|configWarning|remoteControl\/|mcpServer\/|skills\/|account\/updated)/;

/** Handles a notification of the server. */
function appServerNotification(state: AppServerState, taken: ReceivedNotification): Step<AppServerState> {
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

function takeItem(state: AppServerState, { message, line }: ReceivedNotification): Step<AppServerState> {
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
 * Reports the usage since the previous update. An update holds the total of the thread and the usage of the last
 * request. The total of a resumed thread includes earlier turns, also those whose end a crash hid from Reprise. If their
 * usage is unknown, only the last request counts.
 */
function takeUsage(state: AppServerState, params: Json): Step<AppServerState> {
  const total = usageOf(at(params, 'tokenUsage', 'total'));
  const turnId = textAt(params, 'turnId');
  const isOldTurn = turnId !== undefined && turnId !== state.turnId;
  const last = isOldTurn ? noUsage : usageOf(at(params, 'tokenUsage', 'last'));
  const usage = usageSince(state.used ?? usageSince(last, total), total);
  const isNothing = isOldTurn && usage.inputTokens === 0 && usage.outputTokens === 0;
  return { state: { ...state, used: total }, signals: isNothing ? [] : [event({ type: 'usage', ...usage })] };
}

const usageOf = (counts: Json | undefined): Usage => ({
  inputTokens: numberAt(counts, 'inputTokens') ?? 0,
  outputTokens: numberAt(counts, 'outputTokens') ?? 0,
  cachedTokens: numberAt(counts, 'cachedInputTokens') ?? 0,
  costUsd: null,
});

/** Returns the later reset time of the exhausted rate limit windows. */
function resetOf(params: Json): string | undefined {
  const resets = ['primary', 'secondary'].flatMap(window => {
    const isFull = (numberAt(params, 'rateLimits', window, 'usedPercent') ?? 0) >= 100;
    return isFull ? (numberAt(params, 'rateLimits', window, 'resetsAt') ?? []) : [];
  });
  return resets.length > 0 ? resetFromEpoch(Math.max(...resets)) : undefined;
}

/** Returns the verdict for a finished turn. */
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

/** Returns the HTTP status of a failure: reported in its details, or implied by its kind. */
function statusOf(info: Json | undefined): number | undefined {
  if (typeof info === 'string') return own(statuses, info);
  if (!isJsonObject(info)) return undefined;
  return Object.values(info).flatMap(detail => numberAt(detail, 'httpStatusCode') ?? [])[0];
}

/** Launches `codex app-server`, which asks before it runs untrusted commands or leaves its sandbox. */
export function appServerLaunch(request: SessionRequest): Launch {
  refuseFork(request);
  const translated = appServerArguments(request.agent.args);
  if (!translated.ok) {
    const { message, hint } = unsupportedArgument(translated.unsupported);
    throw new RepriseError('CONFIG_INVALID', `agent \`${request.agent.name}\`: ${message}`, { hint });
  }
  return { argv: [...commandOf(request.agent), 'app-server', ...translated.args], stdin: 'open' };
}

interface AppServerState {
  readonly threadId: string | undefined;
  readonly turnId: string | undefined;
  readonly text: string;
  /** Ids of running tools. */
  readonly open: readonly string[];
  /** Items by id, because a permission request only names its item. */
  readonly items: Readonly<Record<string, Json>>;
  /** Total usage of the thread, or `undefined` before the first update. */
  readonly used: Usage | undefined;
  readonly resetsAt: string | undefined;
  /** JSON-RPC ids of permission requests that wait for the host, by question id. */
  readonly pendingRequests: Readonly<Record<string, RpcId>>;
}

const initial: AppServerState = {
  threadId: undefined,
  turnId: undefined,
  text: '',
  open: [],
  items: {},
  used: undefined,
  resetsAt: undefined,
  pendingRequests: {},
};

const ids = { initialize: 1, thread: 2, turn: 3 } as const;

/** JSON-RPC protocol of `codex app-server`. */
export function appServerProtocol(context: ProtocolContext): Protocol<AppServerState> {
  const { request } = context;
  return {
    open: () => ({
      state: { ...initial, used: request.resume?.usage },
      signals: [
        send({
          id: ids.initialize,
          method: 'initialize',
          params: { clientInfo: { name: 'reprise', title: 'Reprise', version: '1' } },
        }),
      ],
    }),
    take: (state, line) => {
      const message = parseRpc(line);
      return message
        ? takeMessage(state, { message, line, context })
        : { state, signals: [event(rawEvent(line))] };
    },
    answer: (state, question, answer) => {
      if (question.kind === 'limit') {
        const prompt = answer.kind === 'continue' ? (answer.prompt ?? continuePrompt) : continuePrompt;
        return { state, signals: [startTurn(request, state.threadId ?? '', prompt)] };
      }
      const wireId = own(state.pendingRequests, question.id);
      if (wireId === undefined) return { state, signals: [] };
      const { [question.id]: _, ...pendingRequests } = state.pendingRequests;
      const decision = decisionOf(question, answer);
      const { id, tool, input } = question;
      const reported = event({ type: 'permission', id, tool, input, decision });
      return { state: { ...state, pendingRequests }, signals: [reported, respond(wireId, decision)] };
    },
    interrupt: state => {
      const { threadId, turnId } = state;
      if (threadId === undefined || turnId === undefined) return { state, signals: [] };
      return {
        state,
        signals: [send({ id: 'interrupt', method: 'turn/interrupt', params: { threadId, turnId } })],
      };
    },
    ended: () => undefined,
  };

  function takeMessage(state: AppServerState, taken: ReceivedRpc): Step<AppServerState> {
    const { message } = taken;
    switch (message.kind) {
      case 'notification':
        return appServerNotification(state, { ...taken, message });
      case 'request':
        return takeRequest(state, { ...taken, message });
      case 'result':
        return takeResult(state, message.id, message.result);
      case 'error':
        return { state, signals: errorSignals(message.id, message.error) };
    }
  }

  function takeResult(state: AppServerState, id: RpcId, result: Json): Step<AppServerState> {
    switch (id) {
      case ids.initialize:
        return { state, signals: [send({ method: 'initialized' }), openThread(request)] };
      case ids.thread: {
        const threadId = textAt(result, 'thread', 'id') ?? request.resume?.sessionId ?? '';
        const model = textAt(result, 'model') ?? textAt(result, 'thread', 'model');
        const started = {
          type: 'started',
          sessionId: threadId,
          cwd: request.cwd,
          ...(model ? { model } : {}),
        } as const;
        const signals = [event(started), startTurn(request, threadId, wholePrompt(request))];
        return { state: { ...state, threadId }, signals };
      }
      case ids.turn:
        return { state: { ...state, turnId: textAt(result, 'turn', 'id') ?? state.turnId }, signals: [] };
      default:
        return { state, signals: [] };
    }
  }

  function errorSignals(id: RpcId | undefined, error: RpcError) {
    if (id === 'interrupt') return [];
    return [verdict(reportedFailure({ kind: 'codex', message: rpcErrorText(error), now: context.now() }))];
  }
}

interface ReceivedRpc {
  readonly message: RpcMessage;
  readonly line: string;
  readonly context: ProtocolContext;
}

function takeRequest(
  state: AppServerState,
  { message, line, context }: ReceivedRpc & { readonly message: Extract<RpcMessage, { kind: 'request' }> },
): Step<AppServerState> {
  const { id: wireId, method, params } = message;
  const itemId = textAt(params, 'itemId') ?? '';
  const use = toolUseOf(method, params, own(state.items, itemId));
  if (!use) {
    const error = { code: -32601, message: `${method} is not supported` };
    return { state, signals: [event(rawEvent(line)), send({ id: wireId, error })] };
  }
  // One item can ask several times.
  const id = textAt(params, 'approvalId') ?? (itemId || String(wireId));
  const ruling = context.rule(use.name, use.input);
  const signals = permissionSignals({ id, tool: use.name, input: use.input }, ruling);
  switch (ruling.kind) {
    case 'decided':
      return { state, signals: [...signals, respond(wireId, ruling.decision)] };
    case 'ask':
      return { state: { ...state, pendingRequests: { ...state.pendingRequests, [id]: wireId } }, signals };
  }
}

function toolUseOf(method: string, params: Json, item: Json | undefined) {
  switch (method) {
    case 'item/commandExecution/requestApproval': {
      const host = textAt(params, 'networkApprovalContext', 'host');
      if (host !== undefined) return { name: 'WebFetch', input: { url: `https://${host}` } };
      // Permission to run a program does not cover input to the running program.
      if ((textAt(params, 'kind') ?? 'command') !== 'command') return { name: 'WriteStdin', input: params };
      const command = commandText(params) || commandText(item);
      return { name: 'Bash', input: { command } };
    }
    case 'item/fileChange/requestApproval': {
      const root = at(params, 'grantRoot');
      const edit = codexTool(item) ?? { name: 'Edit', input: {} };
      // With `grantRoot`, codex asks for a whole folder, not for the files of this change.
      return typeof root === 'string' ? { name: 'Edit', input: { paths: [root] } } : edit;
    }
    default:
      return undefined;
  }
}

const openThread = (request: SessionRequest) => {
  const { cwd, resume, agent } = request;
  const settings = {
    cwd,
    approvalPolicy: approvalPolicyOf(request),
    sandbox: sandboxOf(request),
    ...(agent.model ? { model: agent.model } : {}),
  };
  // Otherwise the entire old conversation arrives as one line.
  const old = { threadId: resume?.sessionId ?? '', excludeTurns: true };
  return resume
    ? send({ id: ids.thread, method: 'thread/resume', params: { ...old, ...settings } })
    : send({ id: ids.thread, method: 'thread/start', params: settings });
};

const startTurn = ({ outputSchema }: SessionRequest, threadId: string, text: string) => {
  const input = [{ type: 'text', text }];
  const params = { threadId, input, ...(outputSchema ? { outputSchema } : {}) };
  return send({ id: ids.turn, method: 'turn/start', params });
};

const respond = (id: RpcId, decision: PermissionDecision) =>
  send({ id, result: { decision: decision.kind === 'allow' ? 'accept' : 'decline' } });

const appServerAdapter: Adapter<AppServerState> = {
  launch: appServerLaunch,
  protocol: appServerProtocol,
  speaksOnStdout: true,
  isAnswer: isAgentMessage,
  stopsBy: 'closed-input',
  canContinue: true,
};

/** Opens sessions with `codex app-server`. */
export const codexAppServerSessions = processSessions(appServerAdapter);
