import type { Json } from '../../core/index.ts';
import { failed, protocolError, resetFromEpoch } from '../driver/failures.ts';
import { processSessions } from '../driver/process-session.ts';
import { commandOf } from '../driver/program.ts';
import {
  type Adapter,
  type AgentVerdict,
  at,
  event,
  type Launch,
  own,
  type Protocol,
  type ProtocolContext,
  parseObject,
  rawEvent,
  type Step,
  send,
  textAt,
  verdict,
} from '../driver/protocol.ts';
import { continuePrompt, systemPromptOf } from '../driver/result.ts';
import { decisionOf, type PermissionDecision, permissionSignals } from '../permissions/permissions.ts';
import { noUsage, type SessionRequest, type Usage } from '../session.ts';
import { claudeEvents, claudeResult } from './stream.ts';

const editingTools = ['Edit', 'Write', 'NotebookEdit'];

/** Tools that leave the workspace of the session, or that wait for a person. */
export const unusableTools: readonly string[] = ['EnterWorktree', 'ExitWorktree', 'AskUserQuestion'];

const unattended =
  'This session runs unattended: no one can answer questions. Decide yourself, or finish and say what you need.';

/** Maximum length of an argument, below the limit of Linux. */
const longestArgument = 100_000;

/** Launches Claude Code in two-way mode, in which it asks for every tool that its own settings do not allow. */
export function claudeLaunch(request: SessionRequest, folder: string): Launch {
  const { agent, outputSchema, maxTurns } = request;
  const systemPrompt = [unattended, systemPromptOf(request)].filter(Boolean).join('\n\n');
  const isLong = Buffer.byteLength(systemPrompt) > longestArgument;
  return {
    argv: [
      ...commandOf(agent),
      '-p',
      ...['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
      ...['--permission-prompt-tool', 'stdio', '--permission-mode', 'default'],
      ...(agent.model ? ['--model', agent.model] : []),
      ...(isLong
        ? ['--append-system-prompt-file', `${folder}/${systemPromptFile}`]
        : ['--append-system-prompt', systemPrompt]),
      ...(outputSchema ? ['--json-schema', JSON.stringify(outputSchema)] : []),
      ...(maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]),
      ...budgetArguments(request),
      ...(request.isStrict ? ['--strict-mcp-config'] : []),
      ...['--disallowedTools', ...deniedTools(request)],
      ...sessionArguments(request),
      ...agent.args,
    ],
    stdin: 'open',
    ...(isLong ? { files: { [systemPromptFile]: systemPrompt } } : {}),
    // Claude Code refuses to start inside of itself, but people often start Reprise there.
    env: { CLAUDECODE: undefined },
  };
}

const systemPromptFile = 'system-prompt.md';
const budgetFlag = '--max-budget-usd';

/** Makes Claude Code stop during a turn, because it reports the cost only at the end. */
function budgetArguments({ budget, agent }: SessionRequest): readonly string[] {
  if (budget?.costUsd === undefined || agent.args.includes(budgetFlag)) return [];
  return [budgetFlag, String(budget.costUsd)];
}

function sessionArguments({ sessionId, resume }: SessionRequest): readonly string[] {
  const chosen = sessionId === undefined ? [] : ['--session-id', sessionId];
  if (!resume) return chosen;
  return ['--resume', resume.sessionId, ...(resume.fork ? ['--fork-session', ...chosen] : [])];
}

/** Returns the tools to deny even if the settings of the repository allow them without asking. */
function deniedTools({ permissions: { preset, allow, deny } }: SessionRequest): readonly string[] {
  const isAllowed = (tool: string) => allow.some(rule => rule === tool || rule.startsWith(`${tool}(`));
  const editing =
    preset === 'read-only' && !isAllowed('Edit') ? editingTools.filter(tool => !isAllowed(tool)) : [];
  return [...unusableTools, ...editing, ...deny];
}

export interface ClaudeState {
  readonly sessionId: string | undefined;
  /** Cost reported by the process so far. Claude Code reports a running total. */
  readonly costUsd: number;
  /** Usage of the session before this process. Dropped at the first result, which may include it. */
  readonly before: Usage | undefined;
  /** Usage of all models that the last result reported. */
  readonly modelsUsed: Usage;
  /** Usage since the last result that was reported message by message. */
  readonly counted: Usage;
  readonly countedMessages: readonly string[];
  /** Whether subagents or commands run in the background. */
  readonly hasTasks: boolean;
  /** Whether a background task finished and the model has not been told yet. */
  readonly isNotified: boolean;
  /** Answer of the last turn, while background tasks lead to another one. */
  readonly held: Extract<AgentVerdict, { kind: 'ok' }> | undefined;
  /** Reset time of the last reported limit. */
  readonly resetsAt: string | undefined;
  /** Whether the agent is to stop after its current tool calls. */
  readonly isSuspending: boolean;
  /** Tool inputs of pending permission requests, by request id. */
  readonly pendingRequests: Readonly<Record<string, Json>>;
}

const initial: ClaudeState = {
  sessionId: undefined,
  costUsd: 0,
  before: undefined,
  modelsUsed: noUsage,
  counted: noUsage,
  countedMessages: [],
  hasTasks: false,
  isNotified: false,
  held: undefined,
  resetsAt: undefined,
  isSuspending: false,
  pendingRequests: {},
};

type ClaudeMessage = NonNullable<ReturnType<typeof parseObject>>;

/** Returns the usage that the totals of a resumed session may include; `undefined` if nothing is known of it. */
function usedBefore({ resume }: SessionRequest): Usage | undefined {
  const usage = resume?.usage;
  return usage && usage.inputTokens + usage.outputTokens > 0 ? usage : undefined;
}

/** Hook that lets a suspended session stop between two requests to the model. Without a timeout it would expire. */
const afterTools = { hookCallbackIds: ['after-tool'], timeout: 86_400 };

/** Two-way stream-json of Claude Code. */
export function claudeProtocol(context: ProtocolContext): Protocol<ClaudeState> {
  return {
    open: () => ({
      state: { ...initial, before: usedBefore(context.request) },
      signals: [
        send({
          type: 'control_request',
          request_id: 'initialize',
          request: { subtype: 'initialize', hooks: { PostToolUse: [afterTools] } },
        }),
        send(userMessage(context.request.prompt)),
      ],
    }),
    take: (state, line) => {
      const message = parseObject(line);
      return message
        ? takeMessage(state, { message, line, context })
        : { state, signals: [event(rawEvent(line))] };
    },
    answer: (state, question, answer) => {
      if (question.kind === 'limit') {
        const prompt = answer.kind === 'continue' ? (answer.prompt ?? continuePrompt) : continuePrompt;
        return { state, signals: [send(userMessage(prompt))] };
      }
      const input = own(state.pendingRequests, question.id);
      if (input === undefined) return { state, signals: [] };
      const decision = decisionOf(question, answer);
      const { id, tool } = question;
      const { [id]: _, ...pendingRequests } = state.pendingRequests;
      return {
        state: { ...state, pendingRequests },
        signals: [event({ type: 'permission', id, tool, input, decision }), respond(id, decision, input)],
      };
    },
    interrupt: state => ({
      state,
      signals: [
        send({
          type: 'control_request',
          request_id: 'interrupt',
          request: { subtype: 'interrupt', cancel_queued: true },
        }),
      ],
    }),
    suspend: state => ({ ...state, isSuspending: true }),
    ended: (state, exitCode) => (exitCode === 0 ? state.held : undefined),
  };
}

interface ReceivedMessage {
  readonly message: ClaudeMessage;
  readonly line: string;
  readonly context: ProtocolContext;
}

function takeMessage(state: ClaudeState, taken: ReceivedMessage): Step<ClaudeState> {
  const { message, context } = taken;
  switch (message['type']) {
    case 'result':
      return claudeResult(state, message, context);
    case 'control_request':
      return takeRequest(state, taken);
    case 'control_response':
      return { state, signals: responseSignals(message) };
    case 'control_cancel_request': {
      const id = textAt(message, 'request_id') ?? '';
      const { [id]: _, ...pendingRequests } = state.pendingRequests;
      return { state: { ...state, pendingRequests }, signals: [{ kind: 'withdraw', id }] };
    }
    case 'rate_limit_event': {
      const resets = at(message, 'rate_limit_info', 'resetsAt');
      const isReached = textAt(message, 'rate_limit_info', 'status') === 'rejected';
      const resetsAt = isReached && typeof resets === 'number' ? resetFromEpoch(resets) : state.resetsAt;
      return { state: { ...state, resetsAt }, signals: [] };
    }
    default:
      return claudeEvents(state, taken);
  }
}

/** Refuses every request except for permissions and hooks, because Claude Code would wait forever for an answer. */
function takeRequest(state: ClaudeState, { message, line, context }: ReceivedMessage): Step<ClaudeState> {
  const id = textAt(message, 'request_id') ?? '';
  const request = at(message, 'request');
  if (textAt(request, 'subtype') === 'hook_callback')
    return { state, signals: [afterTool(state, id, request)] };
  if (textAt(request, 'subtype') !== 'can_use_tool') {
    const error = { subtype: 'error', request_id: id, error: 'not supported' };
    return { state, signals: [event(rawEvent(line)), send({ type: 'control_response', response: error })] };
  }
  const tool = textAt(request, 'tool_name') ?? '';
  const input = at(request, 'input') ?? {};
  const ruling = context.rule(tool, input);
  const signals = permissionSignals({ id, tool, input }, ruling);
  switch (ruling.kind) {
    case 'decided':
      return { state, signals: [...signals, respond(id, ruling.decision, input)] };
    case 'ask':
      return { state: { ...state, pendingRequests: { ...state.pendingRequests, [id]: input } }, signals };
  }
}

/** Stops a suspended session. A subagent continues, because stopping it would lose its work. */
function afterTool({ isSuspending }: ClaudeState, requestId: string, request: Json | undefined) {
  const isOfSubagent = at(request, 'input', 'agent_id') !== undefined;
  const response = isSuspending && !isOfSubagent ? { continue: false, stopReason: 'suspended' } : {};
  return send({
    type: 'control_response',
    response: { subtype: 'success', request_id: requestId, response },
  });
}

function respond(requestId: string, decision: PermissionDecision, input: Json) {
  const response =
    decision.kind === 'allow'
      ? { behavior: 'allow', updatedInput: input }
      : { behavior: 'deny', message: decision.message, interrupt: false };
  return send({
    type: 'control_response',
    response: { subtype: 'success', request_id: requestId, response },
  });
}

function responseSignals(message: ClaudeMessage) {
  const isRefused = textAt(message, 'response', 'subtype') === 'error';
  if (!isRefused || textAt(message, 'response', 'request_id') !== 'initialize') return [];
  const reason = textAt(message, 'response', 'error') ?? 'no reason given';
  return [
    verdict(
      failed(
        protocolError(
          `claude refused to start: ${reason}`,
          'update it: npm install -g @anthropic-ai/claude-code',
        ),
      ),
    ),
  ];
}

const userMessage = (text: string) => ({
  type: 'user',
  message: { role: 'user', content: [{ type: 'text', text }] },
  parent_tool_use_id: null,
  session_id: '',
});

const claudeAdapter: Adapter<ClaudeState> = {
  launch: claudeLaunch,
  protocol: claudeProtocol,
  speaksOnStdout: true,
  // The result repeats the last message.
  isAnswer: start => /^\{"type":"result"/.test(start),
  stopsBy: 'SIGTERM',
  canContinue: true,
};

/** Opens sessions with Claude Code. */
export const claudeSessions = processSessions(claudeAdapter);
