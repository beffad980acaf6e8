import type { ErrorData } from '../../core/errors.ts';
import type { Timestamp } from '../../core/time.ts';
import type { AgentKind } from '../agent.ts';
import { isLimitText, readReset } from '../limits.ts';
import type { Denial } from '../session.ts';
import type { Verdict } from './protocol.ts';

const longestMessage = 2000;

const shortened = (text: string): string =>
  text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text;

export const failed = (error: ErrorData): Verdict => ({ kind: 'failed', error });

export const protocolError = (message: string, hint?: string): ErrorData => ({
  code: 'AGENT_PROTOCOL',
  message: shortened(message),
  ...(hint ? { hint } : {}),
});

export const limitError = (reason: string, resetsAt?: Timestamp): ErrorData => ({
  code: 'AGENT_LIMIT',
  message: shortened(reason),
  hint: resetsAt
    ? `the limit resets at ${resetsAt}; resume the run then`
    : 'wait until the limit resets, then resume the run',
});

const loginHints: Readonly<Record<AgentKind, string>> = {
  claude: 'run `claude` and type `/login`, or set ANTHROPIC_API_KEY',
  codex: 'run `codex login`, or set CODEX_API_KEY',
  acp: 'start the agent by hand once and log in, or set its API key under `env`',
  command: 'log in with the program itself, or set its API key under `env`',
  scripted: 'change the script',
};

/** What an agent reported as the reason of its failure. */
export interface ReportedFailure {
  readonly kind: AgentKind;
  readonly message: string;
  /** The HTTP status of the model's server, where the agent says it. */
  readonly status?: number | undefined;
  /** When the limit resets, if the agent said so before. */
  readonly resetsAt?: Timestamp | undefined;
  readonly hint?: string | undefined;
  readonly now: number;
}

/** A failure in the agent's words: a limit, a refused key, or simply a failure. */
export function reportedFailure(failure: ReportedFailure): Verdict {
  const { kind, status, now } = failure;
  const message = shortened(failure.message.trim() || 'the agent failed without saying why');
  if (status === 429 || (status === undefined && isLimitText(message))) {
    const resetsAt = failure.resetsAt ?? readReset(message, now);
    return { kind: 'limit', error: limitError(message, resetsAt), ...(resetsAt ? { resetsAt } : {}) };
  }
  if (status === 401 || status === 403 || (status === undefined && isLoginText(message)))
    return failed({ code: 'AGENT_LOGIN', message, hint: loginHints[kind] });
  return failed({ code: 'AGENT_FAILED', message, hint: failure.hint ?? hintFor(status, message) });
}

const isLoginText = (text: string): boolean =>
  /\b401\b|unauthori[sz]ed|not logged in|please run \/login|invalid (x-)?api[ -]key|authentication (failed|required)/i.test(
    text,
  );

const isServerFailureText = (text: string): boolean =>
  /\b(API Error:|status:?) 5\d\d\b|high demand|overloaded|internal server error|stream disconnected/i.test(
    text,
  );

/** Several first starts of Codex at once: one makes its databases, and the others give up before they begin. */
export const isStartRace = ({ message }: ErrorData): boolean =>
  /failed to initialize (sqlite )?state runtime/i.test(message);

function hintFor(status: number | undefined, message: string): string {
  if (status === undefined ? isServerFailureText(message) : status >= 500)
    return "the model's server failed: add `retry` to the step";
  if (/too long|context (window|length)|maximum context/i.test(message))
    return 'make the prompt shorter, or split the step';
  return 'read what the agent said, and change the prompt or the agent';
}

/** A failure after something was denied most likely came from that, and there is a line that would change it. */
export function withDenials(error: ErrorData, denials: readonly Denial[]): ErrorData {
  const helpful = denials.findLast(denial => denial.lineToAdd !== undefined) ?? denials.at(-1);
  if (!helpful || (error.code !== 'AGENT_FAILED' && error.code !== 'OUTPUT_INVALID')) return error;
  return permissionDenied(helpful, error.message);
}

export const permissionDenied = ({ message, lineToAdd }: Denial, also = ''): ErrorData => ({
  code: 'PERMISSION_DENIED',
  message: [message, also].filter(Boolean).join('\n'),
  hint: lineToAdd
    ? `to allow it, write this into the definition of the agent: ${lineToAdd}`
    : 'a rule under `deny` of the agent forbids it',
});
