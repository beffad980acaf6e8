import type { ErrorData, Json, JsonObject, Timestamp } from '../core/index.ts';
import type { Marker, ProcessIdentity } from '../process/index.ts';
import type { AgentDefinition } from './agent.ts';
import type { PermissionDecision, PermissionPolicy } from './permissions/permissions.ts';

/** What an agent does, in one vocabulary for all of them. Messages are whole: streamed pieces are put together. */
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
      /** Absent while the host is asked. */
      readonly decision?: PermissionDecision | undefined;
    }
  /** What was used since the last such event: the sum over a session is what the session used. */
  | ({ readonly type: 'usage' } & Usage)
  | {
      readonly type: 'retry';
      readonly attempt: number;
      readonly delayMs?: number | undefined;
      readonly reason: string;
    }
  | { readonly type: 'limit'; readonly resetsAt?: Timestamp | undefined; readonly reason: string }
  /** A line that no adapter knows, or that was too long: its beginning. */
  | { readonly type: 'raw'; readonly line: string }
  | { readonly type: 'done'; readonly outcome: SessionResult['kind'] };

/** `inputTokens` includes `cachedTokens`. Cost is null when nobody says it and the agent has no `price`. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly costUsd: number | null;
}

/** One conversation with one agent, as data alone. */
export interface SessionRequest {
  readonly agent: AgentDefinition;
  readonly prompt: string;
  /** Comes before the agent's own one, which is still said. */
  readonly systemPrompt?: string | undefined;
  /** JSON Schema of the answer. */
  readonly outputSchema?: JsonObject | undefined;
  /** Absolute path of the workspace. */
  readonly cwd: string;
  /** Added to what the host inherits and to the agent's own. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly permissions: PermissionPolicy;
  /** The id that the session shall have, where the agent lets us choose: a UUID. */
  readonly sessionId?: string | undefined;
  readonly resume?: ResumeRequest | undefined;
  /** Only `claude` knows it. */
  readonly maxTurns?: number | undefined;
  /**
   * `ask` makes a limit a question to the host, where the agent stays alive to go on (not `codex exec` and `command`);
   * otherwise it ends the session.
   */
  readonly onLimit?: 'end' | 'ask' | undefined;
}

export interface ResumeRequest {
  readonly sessionId: string;
  /** Leaves the old session as it is and goes on in a copy. */
  readonly fork?: boolean | undefined;
  /** What was told that the session had used before, because agents count on from there. */
  readonly usage?: Usage | undefined;
}

/** What a session needs from whoever runs it. */
export interface SessionHost {
  /** Must not throw. */
  onEvent(event: AgentEvent): void;
  /** Told before anything is said to the agent. If this rejects, the agent is ended and `next` rejects as well. */
  onProcess?(process: ProcessIdentity): void | Promise<void>;
  /** Told of processes that no signal could end. */
  onSurvived?(processes: readonly ProcessIdentity[]): void;
  /** Aborting it is `cancel()`. */
  readonly signal?: AbortSignal | undefined;
  /** How long the agent may take, in all, to end when it is told to; then everything is killed. */
  readonly graceMs: number;
  readonly inheritEnv: Readonly<Record<string, string | undefined>>;
  /** Unique to this session: by it, processes that the agent left behind are found. */
  readonly marker: Marker;
  /** What the session is part of: the step, the worker, the attempt and the number of the session within it. */
  readonly unit?: SessionUnit | undefined;
  /** What the agent prints is appended to it. */
  readonly logFile?: string | undefined;
  /** Milliseconds since the epoch, to understand "try again in 5 minutes". */
  now?(): number;
}

interface SessionUnit {
  readonly step: string;
  readonly worker?: number | undefined;
  readonly attempt: number;
  /** What it is done for, if that outlives the step. */
  readonly task?: string | undefined;
  readonly number: number;
}

/** Opens a session; nothing happens before its first `next`. A plain function satisfies it. Never throws. */
export type SessionFactory = (request: SessionRequest, host: SessionHost) => Session;

/**
 * A session is a chain of turns, each ending in a question to the host or in the result. The process lives across
 * them. Whoever opens a session closes it.
 */
export interface Session {
  /** Goes on, with the answer to the question of the last turn. Without an answer, the same question comes again. */
  next(answer?: HostAnswer): Promise<TurnEnd>;
  /** Ends the agent and all that it started; the result is then `cancelled`, unless it was handed out before. */
  cancel(): Promise<void>;
  /** Lets the agent end and ends whatever is left. Resolves when nothing of it runs any more. */
  close(): Promise<void>;
}

export type TurnEnd =
  | { readonly kind: 'question'; readonly question: HostQuestion }
  | { readonly kind: 'end'; readonly result: SessionResult; readonly cut?: SessionCut | undefined };

/** Why the host ended a session. A session that was recorded tells it again. */
export type SessionCut = { readonly kind: 'timeout' } | { readonly kind: 'budget'; readonly message: string };

export type HostQuestion =
  | {
      readonly kind: 'permission';
      readonly id: string;
      readonly tool: string;
      readonly input: Json;
      /** What would allow it for ever. */
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
  /** With it the session can be resumed. */
  readonly sessionId?: string | undefined;
  readonly usage: Usage;
  /** What the agent wanted and did not get, with the line that would allow it. */
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

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  costUsd: a.costUsd === null ? b.costUsd : a.costUsd + (b.costUsd ?? 0),
});

/** What came on top of `before`, for agents that count on; never less than nothing. */
export const usageSince = (before: Usage, now: Usage): Usage => ({
  inputTokens: Math.max(0, now.inputTokens - before.inputTokens),
  outputTokens: Math.max(0, now.outputTokens - before.outputTokens),
  cachedTokens: Math.max(0, now.cachedTokens - before.cachedTokens),
  costUsd: now.costUsd === null ? null : Math.max(0, now.costUsd - (before.costUsd ?? 0)),
});

/** With a cost worked out from the agent's price, if nobody said one. */
export function priced(usage: Usage, price: AgentDefinition['price']): Usage {
  if (usage.costUsd !== null || !price) return usage;
  const { inputTokens, outputTokens } = usage;
  return {
    ...usage,
    costUsd: (inputTokens * price.inputPerMtok + outputTokens * price.outputPerMtok) / 1_000_000,
  };
}
