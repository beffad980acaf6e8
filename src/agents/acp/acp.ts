import type { Json } from '../../core/index.ts';
import { failed, protocolError, reportedFailure } from '../driver/failures.ts';
import { processSessions } from '../driver/process-session.ts';
import { commandOf } from '../driver/program.ts';
import {
  type Adapter,
  type AgentVerdict,
  at,
  event,
  isAgentMessage,
  type Launch,
  listAt,
  own,
  type Protocol,
  type ProtocolContext,
  parseRpc,
  type RpcId,
  type RpcMessage,
  rawEvent,
  rpcErrorText,
  type Signal,
  type Step,
  send,
  textAt,
  verdict,
} from '../driver/protocol.ts';
import { continuePrompt, promptWithSchema } from '../driver/result.ts';
import { decisionOf, type PermissionDecision, permissionSignals } from '../permissions/permissions.ts';
import type { SessionRequest } from '../session.ts';
import {
  authenticate,
  call,
  enforcingEnvironment,
  ids,
  loadSession,
  openSession,
  selectMode,
  strictArguments,
} from './opening.ts';
import {
  type AcpTool,
  acpToolAsked,
  acpUpdate,
  flushText,
  isCopilot,
  mergeTool,
  noTurnUsage,
  startTool,
  type TurnUsage,
  takeTurnUsage,
  unaskedEdit,
} from './updates.ts';

/** Handles the response to a prompt, which ends the turn. */
function acpTurnEnd(before: AcpState, result: Json, now: number): Step<AcpState> {
  const { state, signals } = flushText(before);
  const used = takeTurnUsage({ ...state, tools: {} }, result);
  return {
    state: used.state,
    signals: [...signals, ...used.signals, verdict(verdictOf(state, textAt(result, 'stopReason'), now))],
  };
}

function verdictOf(state: AcpState, stopReason: string | undefined, now: number): AgentVerdict {
  const serverError = state.hasSystemError ? state.text : copilotError(state);
  if (serverError !== undefined) return reportedFailure({ kind: 'acp', message: serverError, now });
  const fail = (message: string, hint: string) => failed({ code: 'AGENT_FAILED', message, hint });
  switch (stopReason) {
    case 'end_turn':
      if (state.hasOverstepped)
        return fail('the agent ignored its permissions', 'restrict the agent in its own settings');
      // Some agents end the turn when an action is denied, and the model never learns of it.
      if (state.endsWithDenial) return fail('the agent stopped after the denial', 'allow what it needs');
      return { kind: 'ok', text: state.text };
    case 'cancelled':
      // Some agents stop when an action is denied.
      return state.wasDenied ? fail('the agent stopped', 'allow what it needs') : { kind: 'stopped' };
    case 'max_tokens':
      return fail('the answer exceeded the token limit of the model', 'ask for less in one step');
    case 'max_turn_requests':
      return fail('the agent exceeded the request limit of one turn', 'make the step smaller');
    case 'refusal':
      return fail(`the model refused${state.text ? `: ${state.text}` : ''}`, 'change the prompt');
    default:
      return failed(protocolError(`the agent stopped for an unknown reason: ${stopReason ?? 'none given'}`));
  }
}

/** Copilot reports a failure of the model's server as the last chunk of an ordinary answer. */
const copilotError = ({ agentName, lastChunk }: AcpState): string | undefined =>
  isCopilot(agentName) && lastChunk.startsWith('Error: ') ? lastChunk.slice('Error: '.length) : undefined;

/** Launches any agent that speaks the Agent Client Protocol on its standard streams. */
export const acpLaunch = (request: SessionRequest): Launch => ({
  argv: [...commandOf(request.agent), ...request.agent.args, ...strictArguments(request)],
  stdin: 'open',
  env: enforcingEnvironment(request),
});

export interface AcpState {
  /** Response to `initialize`: the name and the capabilities of the agent. */
  readonly agentInfo: Json;
  readonly agentName: string;
  readonly isAuthenticated: boolean;
  /** Whether the session is replayed because the agent could not resume it otherwise. */
  readonly isLoading: boolean;
  readonly sessionId: string | undefined;
  /** Whether the prompt was sent. Earlier updates repeat the old conversation of a loaded session. */
  readonly isPrompted: boolean;
  /** Message whose chunks are being joined. */
  readonly open: OpenMessage | undefined;
  /** Last complete message. */
  readonly text: string;
  /** Last chunk of a message, unless a tool was used since. */
  readonly lastChunk: string;
  readonly tools: Readonly<Record<string, AcpTool>>;
  /** Whether a system error was reported. One agent reports a broken connection this way, beside an ordinary answer. */
  readonly hasSystemError: boolean;
  /** Total cost of the session that was reported so far. */
  readonly costUsd: number;
  readonly turnUsage: TurnUsage;
  /** Permission requests that wait for the host, by question id. */
  readonly pendingRequests: Readonly<
    Record<string, { readonly wireId: RpcId; readonly options: readonly Json[] }>
  >;
  readonly wasDenied: boolean;
  /** Whether the agent edited files that its permissions protect, without asking. */
  readonly hasOverstepped: boolean;
  /** Whether an action was denied and the model has said nothing since. */
  readonly endsWithDenial: boolean;
}

interface OpenMessage {
  readonly type: 'text' | 'thought';
  readonly text: string;
  readonly id?: string | undefined;
}

const initial: AcpState = {
  agentInfo: null,
  agentName: '',
  isAuthenticated: false,
  isLoading: false,
  sessionId: undefined,
  isPrompted: false,
  open: undefined,
  text: '',
  lastChunk: '',
  tools: {},
  hasSystemError: false,
  costUsd: 0,
  turnUsage: noTurnUsage,
  pendingRequests: {},
  wasDenied: false,
  hasOverstepped: false,
  endsWithDenial: false,
};

const methodNotFound = -32601;
const authenticationRequired = -32000;

/** Client side of the Agent Client Protocol, version 1. Offers the agent neither files nor terminals. */
export function acpProtocol(context: ProtocolContext): Protocol<AcpState> {
  const { request } = context;
  return {
    open: () => ({
      state: { ...initial, costUsd: request.resume?.usage?.costUsd ?? 0 },
      signals: [
        call(ids.initialize, 'initialize', {
          protocolVersion: 1,
          clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
          clientInfo: { name: 'reprise', title: 'Reprise', version: '1' },
        }),
      ],
    }),
    take: (state, line) => {
      const message = parseRpc(line);
      return message ? takeMessage(state, message, line) : { state, signals: [event(rawEvent(line))] };
    },
    answer: (state, question, answer) => {
      if (question.kind === 'limit') {
        const text = answer.kind === 'continue' ? (answer.prompt ?? continuePrompt) : continuePrompt;
        return { state, signals: [prompt(state.sessionId ?? '', text)] };
      }
      const asked = own(state.pendingRequests, question.id);
      if (!asked) return { state, signals: [] };
      const { [question.id]: _, ...others } = state.pendingRequests;
      const decision = decisionOf(question, answer);
      const { id, tool, input } = question;
      return {
        state: { ...decided(state, decision), pendingRequests: others },
        signals: [
          event({ type: 'permission', id, tool, input, decision }),
          respond(asked.wireId, decision, asked.options),
        ],
      };
    },
    interrupt: state => {
      if (state.sessionId === undefined) return { state, signals: [] };
      const waiting = Object.values(state.pendingRequests).map(({ wireId }) =>
        reply(wireId, { outcome: { outcome: 'cancelled' } }),
      );
      const cancel = send({
        jsonrpc: '2.0',
        method: 'session/cancel',
        params: { sessionId: state.sessionId },
      });
      return { state: { ...state, pendingRequests: {} }, signals: [cancel, ...waiting] };
    },
    ended: () => undefined,
  };

  function takeMessage(state: AcpState, message: RpcMessage, line: string): Step<AcpState> {
    switch (message.kind) {
      case 'notification':
        if (message.method === 'session/update') return takeUpdate(state, at(message.params, 'update'), line);
        return { state, signals: message.method.startsWith('_') ? [] : [event(rawEvent(line))] };
      case 'request':
        return takeRequest(state, message);
      case 'result':
        return takeResult(state, message.id, message.result);
      case 'error':
        return takeError(state, message);
    }
  }

  /** Records an edit that the permissions forbid and that the agent did not ask for. */
  function takeUpdate(before: AcpState, update: Json | undefined, line: string): Step<AcpState> {
    const edit = before.isPrompted ? unaskedEdit(before, update) : undefined;
    const step = acpUpdate(before, update, line);
    if (!edit) return step;
    const { tool, input } = acpToolAsked(edit);
    const ruling = context.rule(tool, input);
    if (ruling.kind === 'decided' && ruling.decision.kind === 'allow') return step;
    const reason = ruling.kind === 'decided' && 'message' in ruling.decision ? ruling.decision.message : '';
    const decision = { kind: 'deny', message: `${tool} was used without asking. ${reason}`.trim() } as const;
    const id = textAt(update, 'toolCallId') ?? '';
    return {
      state: { ...step.state, hasOverstepped: true },
      signals: [...step.signals, event({ type: 'permission', id, tool, input, decision })],
    };
  }

  function sendPrompt(state: AcpState): Step<AcpState> {
    const signals = [prompt(state.sessionId ?? '', promptWithSchema(request))];
    return { state: { ...state, isPrompted: true }, signals };
  }

  function takeError(state: AcpState, { id, error }: Extract<RpcMessage, { kind: 'error' }>): Step<AcpState> {
    if (id === ids.session && error.code === methodNotFound) {
      // Qwen Code lists `session/resume` among its capabilities but does not have it.
      const load = loadSession(request, state.agentInfo);
      if (load && !state.isLoading) return { state: { ...state, isLoading: true }, signals: [load] };
    }
    if (id === ids.session && error.code === authenticationRequired && !state.isAuthenticated) {
      const login = authenticate(state.agentInfo);
      if (login) return { state: { ...state, isAuthenticated: true }, signals: [login] };
    }
    const flushed = flushText(state);
    const status = error.code === authenticationRequired ? 401 : error.code > 0 ? error.code : undefined;
    const failure = reportedFailure({
      kind: 'acp',
      message: rpcErrorText(error),
      status,
      now: context.now(),
    });
    return { state: flushed.state, signals: [...flushed.signals, verdict(failure)] };
  }

  function takeResult(state: AcpState, id: RpcId, result: Json): Step<AcpState> {
    switch (id) {
      case ids.initialize:
        return {
          state: { ...state, agentInfo: result, agentName: textAt(result, 'agentInfo', 'name') ?? '' },
          signals: [openSession(request, result)],
        };
      case ids.authenticate:
        return { state, signals: [openSession(request, state.agentInfo)] };
      case ids.session: {
        const sessionId = textAt(result, 'sessionId') ?? request.resume?.sessionId;
        if (sessionId === undefined)
          return {
            state,
            signals: [verdict(failed(protocolError('the agent opened a session without an id')))],
          };
        const started = event({ type: 'started', sessionId, cwd: request.cwd });
        const mode = selectMode(request, sessionId, result);
        const opened = { ...state, sessionId };
        if (mode) return { state: opened, signals: [started, mode] };
        const first = sendPrompt(opened);
        return { state: first.state, signals: [started, ...first.signals] };
      }
      case ids.mode:
        return sendPrompt(state);
      case ids.prompt:
        return acpTurnEnd(state, result, context.now());
      default:
        return { state, signals: [] };
    }
  }

  function takeRequest(
    state: AcpState,
    { id: wireId, method, params }: Extract<RpcMessage, { kind: 'request' }>,
  ): Step<AcpState> {
    if (method !== 'session/request_permission') {
      const error = { code: -32601, message: `${method} is not offered: use your own tools` };
      return { state, signals: [send({ jsonrpc: '2.0', id: wireId, error })] };
    }
    const call = at(params, 'toolCall');
    const id = textAt(call, 'toolCallId') ?? String(wireId);
    const asked = { ...mergeTool(own(state.tools, id), call), isAsked: true };
    const merged = { ...state, tools: { ...state.tools, [id]: asked } };
    const started = startTool(merged, id);
    const { tool, input } = acpToolAsked(own(started.state.tools, id));
    const ruling = context.rule(tool, input);
    const signals: readonly Signal[] = [
      ...started.signals,
      ...permissionSignals({ id, tool, input }, ruling),
    ];
    const options = listAt(params, 'options');
    switch (ruling.kind) {
      case 'decided':
        return {
          state: decided(started.state, ruling.decision),
          signals: [...signals, respond(wireId, ruling.decision, options)],
        };
      case 'ask':
        return {
          state: {
            ...started.state,
            pendingRequests: { ...state.pendingRequests, [id]: { wireId, options } },
          },
          signals,
        };
    }
  }
}

const decided = (state: AcpState, { kind }: PermissionDecision): AcpState =>
  kind === 'deny' ? { ...state, wasDenied: true, endsWithDenial: true } : state;

const reply = (id: RpcId, result: Json) => send({ jsonrpc: '2.0', id, result });

const prompt = (sessionId: string, text: string) =>
  call(ids.prompt, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] });

/** Answers a permission request with an option of the right kind, because agents name their options freely. */
function respond(wireId: RpcId, decision: PermissionDecision, options: readonly Json[]) {
  const kinds = decision.kind === 'allow' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  const chosen = kinds.flatMap(kind => options.find(option => textAt(option, 'kind') === kind) ?? [])[0];
  const optionId = textAt(chosen, 'optionId');
  const outcome = optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId };
  return reply(wireId, { outcome });
}

const acpAdapter: Adapter<AcpState> = {
  launch: acpLaunch,
  protocol: acpProtocol,
  speaksOnStdout: true,
  isAnswer: isAgentMessage,
  canContinue: true,
};

/** Opens sessions with agents that speak the Agent Client Protocol. */
export const acpSessions = processSessions(acpAdapter);
