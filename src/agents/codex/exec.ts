import type { JsonObject } from '../../core/index.ts';
import { reportedFailure } from '../driver/failures.ts';
import { processSessions } from '../driver/process-session.ts';
import { commandOf } from '../driver/program.ts';
import {
  type Adapter,
  at,
  event,
  isAgentMessage,
  type Launch,
  numberAt,
  type Protocol,
  type ProtocolContext,
  parseObject,
  rawEvent,
  type Step,
  textAt,
  verdict,
} from '../driver/protocol.ts';
import { wholePrompt } from '../driver/result.ts';
import { noUsage, type SessionFactory, type SessionRequest, type Usage, usageSince } from '../session.ts';
import { codexAppServerSessions } from './app-server.ts';
import { appServerArguments } from './arguments.ts';
import { asksForApproval, itemEvents, refuseFork, sandboxOf } from './items.ts';

/** Maximum length of an argument, below the limit of Linux. */
const longestArgument = 100_000;

/** Launches `codex exec --json`. It waits forever on an open standard input, so it gets none or one that ends. */
export function codexLaunch(request: SessionRequest, folder: string): Launch {
  const { agent, outputSchema, resume } = request;
  refuseFork(request);
  const prompt = wholePrompt(request);
  const isLong = Buffer.byteLength(prompt) > longestArgument;
  const argument = isLong ? ['-'] : prompt.startsWith('-') ? ['--', prompt] : [prompt];
  return {
    argv: [
      ...commandOf(agent),
      ...['exec', '--json', '--skip-git-repo-check', '-s', sandboxOf(request)],
      ...(agent.model ? ['-m', agent.model] : []),
      ...(outputSchema ? ['--output-schema', `${folder}/schema.json`] : []),
      ...agent.args,
      ...(resume ? ['resume', resume.sessionId] : []),
      ...argument,
    ],
    stdin: isLong ? { text: prompt } : 'ignore',
    ...(outputSchema ? { files: { 'schema.json': JSON.stringify(outputSchema) } } : {}),
  };
}

export interface CodexState {
  readonly text: string;
  /** Ids of running tools. */
  readonly open: readonly string[];
  /** Total usage of the thread, including turns before it was resumed. */
  readonly used: Usage;
}

/** Event stream of `codex exec --json`. */
export function codexProtocol(context: ProtocolContext): Protocol<CodexState> {
  const { resume } = context.request;
  const stay = (state: CodexState) => ({ state, signals: [] });
  return {
    open: () => stay({ text: '', open: [], used: resume?.usage ?? noUsage }),
    take: (state, line) => {
      const message = parseObject(line);
      return message
        ? takeMessage(state, message, line, context)
        : { state, signals: [event(rawEvent(line))] };
    },
    answer: stay,
    interrupt: stay,
    ended: () => undefined,
  };
}

function takeMessage(
  state: CodexState,
  message: JsonObject,
  line: string,
  context: ProtocolContext,
): Step<CodexState> {
  switch (message['type']) {
    case 'thread.started':
      return {
        state,
        signals: [event({ type: 'started', sessionId: textAt(message, 'thread_id') ?? '' })],
      };
    case 'turn.started':
      return { state, signals: [] };
    case 'item.started':
    case 'item.updated':
    case 'item.completed':
      return takeItem(state, message, line);
    case 'turn.completed': {
      const used = usageOf(message);
      const signals = [
        event({ type: 'usage', ...usageSince(state.used, used) }),
        verdict({ kind: 'ok', text: state.text }),
      ];
      return { state: { ...state, used }, signals };
    }
    case 'turn.failed': {
      const said = textAt(message, 'error', 'message') ?? '';
      return {
        state,
        signals: [verdict(reportedFailure({ kind: 'codex', message: said, now: context.now() }))],
      };
    }
    case 'error':
      return { state, signals: [event(warning(message, line))] };
    default:
      return { state, signals: [event(rawEvent(line))] };
  }
}

function takeItem(state: CodexState, message: JsonObject, line: string): Step<CodexState> {
  const item = at(message, 'item');
  const isOver = message['type'] === 'item.completed';
  const { events, open } = itemEvents({ item, isOver, open: state.open, line });
  const text = isOver && textAt(item, 'type') === 'agent_message' ? textAt(item, 'text') : undefined;
  return { state: { ...state, open, text: text ?? state.text }, signals: events.map(event) };
}

/** Turns an `error` into an event. It never ends the turn, `turn.failed` does. */
function warning(message: JsonObject, line: string) {
  const text = textAt(message, 'message') ?? '';
  const attempt = /reconnecting\D*(\d+)/i.exec(text)?.[1];
  return attempt ? ({ type: 'retry', attempt: Number(attempt), reason: text } as const) : rawEvent(line);
}

const usageOf = (message: JsonObject): Usage => ({
  inputTokens: numberAt(message, 'usage', 'input_tokens') ?? 0,
  outputTokens: numberAt(message, 'usage', 'output_tokens') ?? 0,
  cachedTokens: numberAt(message, 'usage', 'cached_input_tokens') ?? 0,
  costUsd: null,
});

const codexAdapter: Adapter<CodexState> = {
  launch: codexLaunch,
  protocol: codexProtocol,
  speaksOnStdout: true,
  isAnswer: isAgentMessage,
  canContinue: false,
};

const execSessions = processSessions(codexAdapter);

/**
 * Whether the app server should enforce a budget, because `codex exec` reports its usage only at the end. Codex itself
 * reports no cost.
 */
const hasBudget = ({ budget, agent }: SessionRequest): boolean =>
  (budget?.tokens !== undefined || (budget?.costUsd !== undefined && agent.price !== undefined)) &&
  appServerArguments(agent.args).ok;

/** Opens sessions with Codex: `exec` in a sandbox, or the app server if there are rules, a host to ask or a budget. */
export const codexSessions: SessionFactory = (request, host) =>
  asksForApproval(request) || hasBudget(request)
    ? codexAppServerSessions(request, host)
    : execSessions(request, host);
