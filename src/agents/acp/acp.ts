import type { Json } from '../../core/index.ts';
import { failed, protocolError, reportedFailure } from '../driver/failures.ts';
import { processSessions } from '../driver/process-session.ts';
import { commandOf } from '../driver/program.ts';
import {
  type Adapter,
  type AgentVerdict,
  at,
  event,
  type Launch,
  listAt,
  numberAt,
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
import type { SessionRequest, Usage } from '../session.ts';
import {
  type AcpTool,
  acpToolUse,
  acpUpdate,
  flushText,
  isCopilot,
  mergeTool,
  startTool,
} from './updates.ts';

/** Handles the response to a prompt, which ends the turn. */
function acpTurnEnd(before: AcpState, result: Json, now: number): Step<AcpState> {
  const { state, signals } = flushText(before);
  const { costUsd, costReported } = state;
  const usage = usageOf(result, costUsd === undefined ? undefined : costSince(costReported, costUsd));
  return {
    state: { ...state, tools: {}, costReported: costUsd ?? costReported },
    signals: [
      ...signals,
      ...(usage ? [event({ type: 'usage', ...usage })] : []),
      verdict(verdictOf(state, textAt(result, 'stopReason'), now)),
    ],
  };
}

/** Returns the cost since the last report. An agent that was killed restarts its total from zero. */
const costSince = (reportedCost: number, now: number): number =>
  now < reportedCost ? now : now - reportedCost;

function verdictOf(state: AcpState, stopReason: string | undefined, now: number): AgentVerdict {
  const serverError = state.hasSystemError ? state.text : copilotError(state);
  if (serverError !== undefined) return reportedFailure({ kind: 'acp', message: serverError, now });
  const fail = (message: string, hint: string) => failed({ code: 'AGENT_FAILED', message, hint });
  switch (stopReason) {
    case 'end_turn':
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

/** Returns the usage from the response, or from the place where Gemini puts it. Some agents report none. */
function usageOf(result: Json, costUsd: number | undefined): Usage | undefined {
  const usage = at(result, 'usage');
  const quota = at(result, '_meta', 'quota', 'token_count');
  const outputTokens = numberAt(usage, 'outputTokens') ?? numberAt(quota, 'output_tokens');
  const given = numberAt(usage, 'inputTokens') ?? numberAt(quota, 'input_tokens');
  if (outputTokens === undefined || given === undefined) {
    return costUsd === undefined ? undefined : { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd };
  }
  // Agents differ in whether the input includes cached tokens; the total does.
  const total = numberAt(usage, 'totalTokens');
  return {
    inputTokens: total === undefined ? given : Math.max(given, total - outputTokens),
    outputTokens,
    cachedTokens: numberAt(usage, 'cachedReadTokens') ?? 0,
    costUsd: costUsd ?? null,
  };
}

/** Launches any agent that speaks the Agent Client Protocol on its standard streams. */
const acpLaunch = ({ agent }: SessionRequest): Launch => ({
  argv: [...commandOf(agent), ...agent.args],
  stdin: 'open',
});

export interface AcpState {
  /** Name by which the agent introduced itself. */
  readonly agentName: string;
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
  /** Total cost of the session, if the agent reports it. */
  readonly costUsd: number | undefined;
  /** Part of the total cost that earlier usage events covered. */
  readonly costReported: number;
  /** Permission requests that wait for the host, by question id. */
  readonly pendingRequests: Readonly<
    Record<string, { readonly wireId: RpcId; readonly options: readonly Json[] }>
  >;
  readonly wasDenied: boolean;
  /** Whether an action was denied and the model has said nothing since. */
  readonly endsWithDenial: boolean;
}

interface OpenMessage {
  readonly type: 'text' | 'thought';
  readonly text: string;
  readonly id?: string | undefined;
}

const initial: AcpState = {
  agentName: '',
  sessionId: undefined,
  isPrompted: false,
  open: undefined,
  text: '',
  lastChunk: '',
  tools: {},
  hasSystemError: false,
  costUsd: undefined,
  costReported: 0,
  pendingRequests: {},
  wasDenied: false,
  endsWithDenial: false,
};

const ids = { initialize: 1, session: 2, prompt: 3 } as const;

/** Client side of the Agent Client Protocol, version 1. Offers the agent neither files nor terminals. */
export function acpProtocol(context: ProtocolContext): Protocol<AcpState> {
  const { request } = context;
  return {
    open: () => ({
      state: { ...initial, costReported: request.resume?.usage?.costUsd ?? 0 },
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
        if (message.method === 'session/update') return acpUpdate(state, at(message.params, 'update'), line);
        return { state, signals: message.method.startsWith('_') ? [] : [event(rawEvent(line))] };
      case 'request':
        return takeRequest(state, message);
      case 'result':
        return takeResult(state, message.id, message.result);
      case 'error': {
        const { error } = message;
        const flushed = flushText(state);
        const status = error.code === -32000 ? 401 : error.code > 0 ? error.code : undefined;
        const failure = reportedFailure({
          kind: 'acp',
          message: rpcErrorText(error),
          status,
          now: context.now(),
        });
        return { state: flushed.state, signals: [...flushed.signals, verdict(failure)] };
      }
    }
  }

  function takeResult(state: AcpState, id: RpcId, result: Json): Step<AcpState> {
    switch (id) {
      case ids.initialize:
        return {
          state: { ...state, agentName: textAt(result, 'agentInfo', 'name') ?? '' },
          signals: [openSession(request, result)],
        };
      case ids.session: {
        const sessionId = textAt(result, 'sessionId') ?? request.resume?.sessionId;
        if (sessionId === undefined)
          return {
            state,
            signals: [verdict(failed(protocolError('the agent opened a session without an id')))],
          };
        const started = event({ type: 'started', sessionId, cwd: request.cwd });
        return {
          state: { ...state, sessionId, isPrompted: true },
          signals: [started, prompt(sessionId, promptWithSchema(request))],
        };
      }
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
    const merged = { ...state, tools: { ...state.tools, [id]: mergeTool(own(state.tools, id), call) } };
    const started = startTool(merged, id);
    const { tool, input } = acpToolUse(own(started.state.tools, id));
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

const call = (id: RpcId, method: string, params: Json) => send({ jsonrpc: '2.0', id, method, params });
const reply = (id: RpcId, result: Json) => send({ jsonrpc: '2.0', id, result });

const prompt = (sessionId: string, text: string) =>
  call(ids.prompt, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] });

/** Opens or resumes a session, with `session/load` for agents that can only replay the whole conversation. */
function openSession({ cwd, resume }: SessionRequest, answer: Json): Signal {
  const can = (name: string) => at(answer, 'agentCapabilities', 'sessionCapabilities', name) !== undefined;
  const params = { cwd, mcpServers: [] };
  if (at(answer, 'protocolVersion') !== 1) {
    return verdict(
      failed(protocolError('the agent does not support version 1 of the protocol', 'update the agent')),
    );
  }
  if (!resume) return call(ids.session, 'session/new', params);
  const { sessionId } = resume;
  if (resume.fork) {
    return can('fork')
      ? call(ids.session, 'session/fork', { sessionId, ...params })
      : cannot('fork a session');
  }
  if (can('resume')) return call(ids.session, 'session/resume', { sessionId, ...params });
  return at(answer, 'agentCapabilities', 'loadSession') === true
    ? call(ids.session, 'session/load', { sessionId, ...params })
    : cannot('resume a session');
}

const cannot = (what: string): Signal =>
  verdict(failed({ code: 'AGENT_FAILED', message: `the agent cannot ${what}`, hint: 'start a new session' }));

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
  canContinue: true,
};

/** Opens sessions with agents that speak the Agent Client Protocol. */
export const acpSessions = processSessions(acpAdapter);
