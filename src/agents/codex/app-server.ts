import type { Json } from '../../core/json.ts';
import { appServerNotification } from '../codex-app-server-notifications.ts';
import { approvalPolicyOf, refuseFork, sandboxOf } from '../codex-request.ts';
import { reportedFailure } from '../driver/failures.ts';
import { processSessions } from '../driver/process-session.ts';
import {
  type Adapter,
  event,
  type Launch,
  type Protocol,
  type ProtocolContext,
  type Step,
  send,
  verdict,
} from '../driver/protocol.ts';
import { at, own, rawEvent, textAt } from '../json-line.ts';
import type { Decision } from '../permissions/permissions.ts';
import { commandOf } from '../program.ts';
import { continuePrompt, wholePrompt } from '../prompt.ts';
import { parseRpc, type RpcError, type RpcId, type RpcMessage, rpcErrorText } from '../rpc.ts';
import { decisionOf, permissionSignals } from '../ruling.ts';
import type { SessionRequest, Usage } from '../session.ts';
import { codexTool, commandText } from './items.ts';

/** Codex's own server, which asks before it does something that is not trusted, or not possible in its sandbox. */
export function appServerLaunch(request: SessionRequest): Launch {
  refuseFork(request);
  return { argv: [...commandOf(request.agent), 'app-server', ...request.agent.args], stdin: 'open' };
}

export interface AppServerState {
  readonly threadId: string | undefined;
  readonly turnId: string | undefined;
  readonly text: string;
  /** Tools that are under way. */
  readonly open: readonly string[];
  /** Items by id, because a request for approval names its item only. */
  readonly items: Readonly<Record<string, Json>>;
  /** What the thread has used so far; `undefined` until it is told for the first time. */
  readonly used: Usage | undefined;
  readonly resetsAt: string | undefined;
  /** Requests that wait for the host: their ids on the wire. */
  readonly asked: Readonly<Record<string, RpcId>>;
}

const initial: AppServerState = {
  threadId: undefined,
  turnId: undefined,
  text: '',
  open: [],
  items: {},
  used: undefined,
  resetsAt: undefined,
  asked: {},
};

const ids = { initialize: 1, thread: 2, turn: 3 } as const;

/** JSON-RPC with `codex app-server`. */
export function appServerProtocol(context: ProtocolContext): Protocol<AppServerState> {
  const { request } = context;
  return {
    open: () => ({
      state: initial,
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
      const wireId = own(state.asked, question.id);
      if (wireId === undefined) return { state, signals: [] };
      const { [question.id]: _, ...asked } = state.asked;
      const decision = decisionOf(question, answer);
      const { id, tool, input } = question;
      const told = event({ type: 'permission', id, tool, input, decision });
      return { state: { ...state, asked }, signals: [told, respond(wireId, decision)] };
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

  function takeMessage(state: AppServerState, taken: Taken): Step<AppServerState> {
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

interface Taken {
  readonly message: RpcMessage;
  readonly line: string;
  readonly context: ProtocolContext;
}

function takeRequest(
  state: AppServerState,
  { message, line, context }: Taken & { readonly message: Extract<RpcMessage, { kind: 'request' }> },
): Step<AppServerState> {
  const { id: wireId, method, params } = message;
  const itemId = textAt(params, 'itemId') ?? '';
  const wish = wishOf(method, params, own(state.items, itemId));
  if (!wish) {
    const error = { code: -32601, message: `${method} is not supported` };
    return { state, signals: [event(rawEvent(line)), send({ id: wireId, error })] };
  }
  // One item may ask several times.
  const id = textAt(params, 'approvalId') ?? (itemId || String(wireId));
  const ruling = context.rule(wish.name, wish.input);
  const signals = permissionSignals({ id, tool: wish.name, input: wish.input }, ruling);
  switch (ruling.kind) {
    case 'decided':
      return { state, signals: [...signals, respond(wireId, ruling.decision)] };
    case 'ask':
      return { state: { ...state, asked: { ...state.asked, [id]: wireId } }, signals };
  }
}

function wishOf(method: string, params: Json, item: Json | undefined) {
  switch (method) {
    case 'item/commandExecution/requestApproval': {
      const host = textAt(params, 'networkApprovalContext', 'host');
      if (host !== undefined) return { name: 'WebFetch', input: { url: `https://${host}` } };
      // What is typed into a program that runs is not what that program was allowed for.
      if ((textAt(params, 'kind') ?? 'command') !== 'command') return { name: 'WriteStdin', input: params };
      const command = commandText(params) || commandText(item);
      return { name: 'Bash', input: { command } };
    }
    case 'item/fileChange/requestApproval': {
      const root = at(params, 'grantRoot');
      const edit = codexTool(item) ?? { name: 'Edit', input: {} };
      // It asks for a whole folder then, not for the files of this change.
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
  // The whole of an old conversation would come as one line.
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

const respond = (id: RpcId, decision: Decision) =>
  send({ id, result: { decision: decision.kind === 'allow' ? 'accept' : 'decline' } });

const appServerAdapter: Adapter<AppServerState> = {
  launch: appServerLaunch,
  protocol: appServerProtocol,
  speaksOnStdout: true,
  canGoOn: true,
};

/** Sessions with `codex app-server`. */
export const codexAppServerSessions = processSessions(appServerAdapter);
