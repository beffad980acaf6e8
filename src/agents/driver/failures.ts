import { type ErrorData, type Timestamp, toTimestamp } from '../../core/index.ts';
import type { AgentKind } from '../agent.ts';
import type { Denial } from '../session.ts';
import type { AgentVerdict } from './protocol.ts';

const longestMessage = 2000;

const shortened = (text: string): string =>
  text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text;

export const failed = (error: ErrorData): AgentVerdict => ({ kind: 'failed', error });

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

/** Failure as the agent reported it. */
interface ReportedFailure {
  readonly kind: AgentKind;
  readonly message: string;
  /** HTTP status of the model's server, if the agent reports it. */
  readonly status?: number | undefined;
  /** Time at which the limit resets, if the agent reported it earlier. */
  readonly resetsAt?: Timestamp | undefined;
  readonly hint?: string | undefined;
  readonly now: number;
}

/** Classifies a reported failure as a limit, a login problem, an outage of the model's server or a plain failure. */
export function reportedFailure(failure: ReportedFailure): AgentVerdict {
  const { kind, status, now } = failure;
  const message = shortened(failure.message.trim() || 'the agent failed without giving a reason');
  if (status === 429 || (status === undefined && isLimitText(message))) {
    const resetsAt = failure.resetsAt ?? readReset(message, now);
    return { kind: 'limit', error: limitError(message, resetsAt), ...(resetsAt ? { resetsAt } : {}) };
  }
  if (status === 401 || status === 403 || (status === undefined && isLoginText(message)))
    return failed({ code: 'AGENT_LOGIN', message, hint: loginHints[kind] });
  if (status === undefined ? isServerFailureText(message) : status >= 500)
    return failed({
      code: 'AGENT_UNAVAILABLE',
      message,
      hint: 'add `retry` to the step, or run it again later',
    });
  return failed({ code: 'AGENT_FAILED', message, hint: failure.hint ?? hintFor(message) });
}

const isLoginText = (text: string): boolean =>
  /\b401\b|unauthori[sz]ed|not logged in|please run \/login|invalid (x-)?api[ -]key|authentication (failed|required)/i.test(
    text,
  );

const isServerFailureText = (text: string): boolean =>
  /\b(API Error:|status:?) 5\d\d\b|high demand|overloaded|internal server error|stream disconnected/i.test(
    text,
  ) || isConnectionFailureText(text);

const isConnectionFailureText = (text: string): boolean =>
  /\b(ECONN(RESET|REFUSED|ABORTED)|ETIMEDOUT|ENOTFOUND|ENETUNREACH|EHOSTUNREACH|EAI_AGAIN)\b|connection (error|refused|reset|dropped|closed|timed out)|error sending request|socket hang up|fetch failed|network error/i.test(
    text,
  );

/**
 * Whether Codex lost the race to create its databases, which happens when several processes start it for the first
 * time.
 */
export const isStartRace = ({ message }: ErrorData): boolean =>
  /failed to initialize (sqlite )?state runtime/i.test(message);

function hintFor(message: string): string {
  if (/too long|context (window|length)|maximum context/i.test(message))
    return 'make the prompt shorter, or split the step';
  return 'read the output of the agent, then change the prompt or the agent';
}

/** Attributes a failure to the last denial, its most likely cause, and hints at the line that would allow the action. */
export function withDenials(error: ErrorData, denials: readonly Denial[]): ErrorData {
  const helpful = denials.findLast(denial => denial.lineToAdd !== undefined) ?? denials.at(-1);
  if (!helpful || (error.code !== 'AGENT_FAILED' && error.code !== 'OUTPUT_INVALID')) return error;
  return permissionDenied(helpful, error.message);
}

export const permissionDenied = ({ message, lineToAdd }: Denial, also = ''): ErrorData => ({
  code: 'PERMISSION_DENIED',
  message: [message, also].filter(Boolean).join('\n'),
  hint: lineToAdd
    ? `to allow it, set this in the definition of the agent: ${lineToAdd}`
    : 'a `deny` rule of the agent forbids it',
});

/** Whether a message of an agent means that a rate limit or a quota is exhausted. */
export const isLimitText = (text: string): boolean =>
  /rate.?limit|usage limit|too many requests|quota (exceeded|reached)|exceeded your (current )?quota|hit your .{0,20}limit|limit reached|RESOURCE_EXHAUSTED|\b429\b/i.test(
    text,
  );

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses the reset time of a limit from a message: a date, an epoch, "in 2 hours" or "at 3pm (Europe/Berlin)". */
export function readReset(text: string, now: number): Timestamp | undefined {
  const found = readDate(text) ?? readEpoch(text) ?? readDelay(text, now) ?? readTimeOfDay(text, now);
  return found === undefined ? undefined : toTimestamp(found);
}

/** Converts seconds or milliseconds since the epoch. Returns `undefined` for implausible values. */
export function resetFromEpoch(epoch: number | undefined): Timestamp | undefined {
  if (epoch === undefined || !(epoch > 1_000_000_000) || epoch > 10_000_000_000_000) return undefined;
  return toTimestamp(epoch < 100_000_000_000 ? epoch * 1000 : epoch);
}

function readDate(text: string): number | undefined {
  const date = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)/.exec(text)?.[0];
  const epochMs = date === undefined ? Number.NaN : Date.parse(date);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}

function readEpoch(text: string): number | undefined {
  const digits = /(?:\||reset\w*\D{0,20})(\d{10})\b/i.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits) * 1000;
}

function readDelay(text: string, now: number): number | undefined {
  const said = /\b(?:in|after)[: ]+((?:\d+(?:\.\d+)?\s*(?:d|h|m|s)[a-z]*[,\s]*(?:and\s+)?)+)/i.exec(
    text,
  )?.[1];
  if (said === undefined) return undefined;
  let total = 0;
  for (const [, amount, unit] of said.matchAll(/(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)/gi)) {
    total += Number(amount) * (unitMs[unit?.toLowerCase() ?? ''] ?? 1);
  }
  return now + total;
}

/** Returns the next occurrence of a time of day, in the given time zone or the local one. */
function readTimeOfDay(text: string, now: number): number | undefined {
  const said = /\b(?:at|resets?)\s+(\d{1,2})(?::(\d\d))?\s*([ap])m(?:\s*\(([\w/+-]+)\))?/i.exec(text);
  if (!said) return undefined;
  const [, hour, minute = '0', half = '', zone] = said;
  const wanted = ((Number(hour) % 12) + (half.toLowerCase() === 'p' ? 12 : 0)) * 60 + Number(minute);
  const shown = minutesOnTheClock(now, zone);
  if (shown === undefined) return undefined;
  const wait = (wanted - shown + 24 * 60) % (24 * 60);
  return Math.floor(now / 60_000 + wait) * 60_000;
}

function minutesOnTheClock(now: number, timeZone: string | undefined): number | undefined {
  try {
    const form = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
    const clock = new Intl.DateTimeFormat('en', { ...form, ...(timeZone ? { timeZone } : {}) }).format(now);
    const [hours, minutes] = clock.split(':');
    return Number(hours) * 60 + Number(minutes);
  } catch {
    return undefined;
  }
}
