import type { ErrorData, Json, JsonObject, Timestamp } from '../core/index.ts';
import type { Marker, ProcessIdentity } from '../process/index.ts';
import type { AgentDefinition } from './agent.ts';
import type { PermissionDecision, PermissionPolicy } from './permissions/permissions.ts';

/** Event of a session, in one vocabulary for all agents. Streamed chunks are joined into whole messages. */
export type AgentEvent =
  | {
      readonly type: 'started';
      readonly sessionId: string;
      readonly model?: string | undefined;
      readonly cwd?: string | undefined;
    }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thought'; readonly text: string }
  | {
      readonly type: 'tool-start';
      readonly id: string;
      readonly name: string;
      readonly input: Json;
      readonly title?: string | undefined;
    }
  | {
      readonly type: 'tool-end';
      readonly id: string;
      readonly ok: boolean;
      readonly output?: string | undefined;
    }
  | {
      readonly type: 'permission';
      readonly id: string;
      readonly tool: string;
      readonly input: Json;
      /** Decision, absent while the host is asked. */
      readonly decision?: PermissionDecision | undefined;
    }
  /** Usage since the previous event of this type. The sum over all of them is the usage of the session. */
  | ({ readonly type: 'usage' } & Usage)
  | {
      readonly type: 'retry';
      readonly attempt: number;
      readonly delayMs?: number | undefined;
      readonly reason: string;
    }
  | { readonly type: 'limit'; readonly resetsAt?: Timestamp | undefined; readonly reason: string }
  /** Start of a line that is too long or that the adapter does not know. */
  | { readonly type: 'raw'; readonly line: string }
  /** A fact about the session that a person should know. It comes from Reprise, not from the agent. */
  | { readonly type: 'note'; readonly message: string }
  | { readonly type: 'done'; readonly outcome: SessionResult['kind'] };

/** Tokens and cost of a session. */
export interface Usage {
  /** Number of input tokens, including `cachedTokens`. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Cost in US dollars, or `null` if the agent neither reports one nor has a `price`. */
  readonly costUsd: number | null;
}

/** One conversation with one agent, as plain data. */
export interface SessionRequest {
  readonly agent: AgentDefinition;
  readonly prompt: string;
  /** System prompt of the step, which precedes the one of the agent. */
  readonly systemPrompt?: string | undefined;
  /** Key in the `<next>` tags of the prompt, which the agent must repeat. */
  readonly nextKey?: string | undefined;
  /** JSON Schema of the answer. */
  readonly outputSchema?: JsonObject | undefined;
  /** Absolute path of the workspace. */
  readonly cwd: string;
  /** Commit that the workspace started from, if it is a worktree. */
  readonly base?: string | undefined;
  /** Whether the agent must not start the MCP servers that settings in the workspace name. */
  readonly isStrict?: boolean | undefined;
  /** Environment variables, added to those of the host and of the agent. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly permissions: PermissionPolicy;
  /** UUID for the session, used by agents that let the caller choose one. */
  readonly sessionId?: string | undefined;
  readonly resume?: ResumeRequest | undefined;
  /** Maximum number of turns. Only supported by `claude`. */
  readonly maxTurns?: number | undefined;
  /** Remaining budget, for agents that enforce it themselves. */
  readonly budget?:
    | { readonly costUsd?: number | undefined; readonly tokens?: number | undefined }
    | undefined;
  /**
   * Reaction to a rate limit. `ask` turns it into a question to the host if the agent can continue afterwards (not
   * `codex exec` and `command`). `end` ends the session. Defaults to `end`.
   */
  readonly onLimit?: 'end' | 'ask' | undefined;
}

export interface ResumeRequest {
  readonly sessionId: string;
  /** Whether to continue in a copy and leave the old session unchanged. */
  readonly fork?: boolean | undefined;
  /** Usage reported for the session so far. Agents continue counting from there. */
  readonly usage?: Usage | undefined;
}

/** Services that the caller provides to a session. */
export interface SessionHost {
  /** Receives every event. Must not throw. */
  onEvent(event: AgentEvent): void;
  /** Called before anything is sent to the agent. If it rejects, the agent is stopped and `next` rejects as well. */
  onProcess?(process: ProcessIdentity): void | Promise<void>;
  /** Called with processes that survived every signal. */
  onSurvived?(processes: readonly ProcessIdentity[]): void;
  /** Signal that cancels the session when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Total time for a graceful shutdown. Afterwards all processes are killed. */
  readonly graceMs: number;
  readonly inheritEnv: Readonly<Record<string, string | undefined>>;
  /** Marker of this session, which identifies orphaned processes of the agent. */
  readonly marker: Marker;
  /** Part of the run that the session belongs to. */
  readonly unit?: SessionUnit | undefined;
  /** File that the output of the agent is appended to. */
  readonly logFile?: string | undefined;
  /** Returns the time in milliseconds since the epoch, to resolve phrases such as "try again in 5 minutes". */
  now?(): number;
}

interface SessionUnit {
  readonly step: string;
  readonly worker?: number | undefined;
  readonly attempt: number;
  /** Purpose of the session, if it outlives the step. */
  readonly task?: string | undefined;
  /** Number of the session within the attempt. */
  readonly number: number;
}

/** Opens a session without starting the agent, which the first `next` does. Never throws. */
export type SessionFactory = (request: SessionRequest, host: SessionHost) => Session;

/**
 * A sequence of turns, each of which ends with a question to the host or with the result. The process of the agent
 * lives across turns. The caller that opens a session must close it.
 */
export interface Session {
  /** Continues with the answer to the last question. Without an answer, returns the same question again. */
  next(answer?: HostAnswer): Promise<TurnEnd>;
  /**
   * Stops the agent at the next point at which its session can be resumed without losing anything, or at once when `hurry`
   * aborts. The result is `cancelled`, unless the agent finishes first. Without this method, `cancel` is called.
   */
  suspend?(hurry?: AbortSignal): void;
  /** Stops the agent and all its processes. The result is `cancelled`, unless it was already returned. */
  cancel(): Promise<void>;
  /** Lets the agent exit, then stops its remaining processes. Resolves when no process is left. */
  close(): Promise<void>;
}

/** Suspends a session, or cancels one that cannot be suspended. */
export function suspendSession(session: Session, hurry?: AbortSignal): void {
  if (session.suspend) session.suspend(hurry);
  else void session.cancel();
}

export type TurnEnd =
  | { readonly kind: 'question'; readonly question: HostQuestion }
  | {
      readonly kind: 'end';
      readonly result: SessionResult;
      readonly cut?: SessionCut | undefined;
      /** Key of a session that is not the requested one: a recorded or written session. `null` if it had none. */
      readonly nextKey?: string | null | undefined;
    };

/** Reason why the host ended a session. A replayed session reports it again. */
export type SessionCut =
  | { readonly kind: 'timeout' }
  | { readonly kind: 'budget'; readonly message: string }
  | { readonly kind: 'suspend' };

export type HostQuestion =
  | {
      readonly kind: 'permission';
      readonly id: string;
      readonly tool: string;
      readonly input: Json;
      /** Line for the agent definition that would always allow the action. */
      readonly lineToAdd?: string | undefined;
    }
  | { readonly kind: 'limit'; readonly resetsAt?: Timestamp | undefined; readonly error: ErrorData };

/** `allow` and `deny` answer a permission; `continue` and `stop` answer a limit. */
export type HostAnswer =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly message?: string | undefined }
  | { readonly kind: 'continue'; readonly prompt?: string | undefined }
  | { readonly kind: 'stop' };

interface SessionSoFar {
  /** Id by which the session can be resumed. */
  readonly sessionId?: string | undefined;
  readonly usage: Usage;
  /** Denied actions, with the lines that would allow them. */
  readonly denials: readonly Denial[];
}

export interface Denial {
  readonly tool: string;
  readonly message: string;
  readonly lineToAdd?: string | undefined;
}

export type SessionResult = SessionSoFar &
  (
    | { readonly kind: 'ok'; readonly text: string; readonly structured?: Json | undefined }
    | { readonly kind: 'failed'; readonly error: ErrorData }
    | { readonly kind: 'cancelled' }
    | { readonly kind: 'limit'; readonly resetsAt?: Timestamp | undefined; readonly error: ErrorData }
  );

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd: null };

export const addUsage = (a: Usage, b: Usage): Usage =>
  cleanUsage({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    costUsd: a.costUsd === null ? b.costUsd : a.costUsd + (b.costUsd ?? 0),
  });

/** Corrects numbers that an agent cannot mean: token counts are whole, nothing is negative or infinite. */
export const cleanUsage = ({ inputTokens, outputTokens, cachedTokens, costUsd }: Usage): Usage => ({
  inputTokens: wholeCount(inputTokens),
  outputTokens: wholeCount(outputTokens),
  cachedTokens: wholeCount(cachedTokens),
  // A cost that is negative or not a number is not known.
  costUsd: costUsd === null || !(costUsd >= 0) ? null : Math.min(costUsd, Number.MAX_VALUE),
});

/** Corrects a report of usage by the total before it. A report may lower the total, but not below zero. */
export const cleanReport = (report: Usage, total: Usage): Usage => ({
  inputTokens: wholeCount(report.inputTokens, total.inputTokens),
  outputTokens: wholeCount(report.outputTokens, total.outputTokens),
  cachedTokens: wholeCount(report.cachedTokens, total.cachedTokens),
  costUsd:
    report.costUsd === null || Number.isNaN(report.costUsd)
      ? null
      : Math.max(-(total.costUsd ?? 0), Math.min(report.costUsd, Number.MAX_VALUE)),
});

const wholeCount = (count: number, total = 0): number =>
  Number.isNaN(count) ? 0 : Math.min(Number.MAX_SAFE_INTEGER, Math.max(-total, Math.round(count)));

/** Returns the usage since `before`, for agents that report totals. Never negative. */
export const usageSince = (before: Usage, now: Usage): Usage => ({
  inputTokens: Math.max(0, now.inputTokens - before.inputTokens),
  outputTokens: Math.max(0, now.outputTokens - before.outputTokens),
  cachedTokens: Math.max(0, now.cachedTokens - before.cachedTokens),
  costUsd: now.costUsd === null ? null : Math.max(0, now.costUsd - (before.costUsd ?? 0)),
});

/** Adds a cost computed from the price of the agent, unless the agent reported one. */
export function priced(usage: Usage, price: AgentDefinition['price']): Usage {
  if (usage.costUsd !== null || !price) return usage;
  const { inputTokens, outputTokens } = usage;
  return {
    ...usage,
    costUsd: (inputTokens * price.inputPerMtok + outputTokens * price.outputPerMtok) / 1_000_000,
  };
}
