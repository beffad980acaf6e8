import {
  type ErrorData,
  isJsonObject,
  type Json,
  type JsonObject,
  type Timestamp,
} from '../../core/index.ts';
import type { Ruling } from '../permissions/permissions.ts';
import type { AgentEvent, HostAnswer, HostQuestion, SessionRequest } from '../session.ts';

/**
 * Protocol of one kind of agent: a pure state machine over the lines that the agent prints. Its signals report events,
 * messages to send and questions to the host; the driver carries them out.
 */
export interface Protocol<State> {
  readonly open: () => Step<State>;
  /** Handles one line, which may be any text. Must not throw. */
  readonly take: (state: State, line: string) => Step<State>;
  readonly answer: (state: State, question: HostQuestion, answer: HostAnswer) => Step<State>;
  /** Returns the messages that stop the turn, or no signals if only killing the process helps. */
  readonly interrupt: (state: State) => Step<State>;
  /**
   * Makes the agent stop by itself at a point at which its session loses nothing. Its verdict is then `stopped`. Absent if
   * the agent cannot do that.
   */
  readonly suspend?: (state: State) => State;
  /** Called when the agent exits without a verdict. `undefined` means a failure, described by the exit status. */
  readonly ended: (state: State, exitCode: number | undefined) => AgentVerdict | undefined;
}

export interface Step<State> {
  readonly state: State;
  readonly signals: readonly Signal[];
}

export type Signal =
  | { readonly kind: 'event'; readonly event: AgentEvent }
  | { readonly kind: 'send'; readonly message: JsonObject }
  | { readonly kind: 'question'; readonly question: HostQuestion }
  /** The agent no longer waits for the answer. */
  | { readonly kind: 'withdraw'; readonly id: string }
  | { readonly kind: 'verdict'; readonly verdict: AgentVerdict }
  /** The agent finished a turn but will begin another by itself. The verdict counts if it stays silent for too long. */
  | { readonly kind: 'hold'; readonly verdict: AgentVerdict; readonly silenceMs: number };

/** Outcome as the agent reports it, before Reprise validates the answer. */
export type AgentVerdict =
  | { readonly kind: 'ok'; readonly text: string; readonly structured?: Json | undefined }
  | { readonly kind: 'failed'; readonly error: ErrorData }
  | { readonly kind: 'limit'; readonly resetsAt?: Timestamp | undefined; readonly error: ErrorData }
  /** The agent was interrupted, or says so. */
  | { readonly kind: 'stopped' };

/** Inputs of a protocol beside the lines of the agent. */
export interface ProtocolContext {
  readonly request: SessionRequest;
  readonly rule: (tool: string, input: Json) => Ruling;
  readonly now: () => number;
}

/** Program to start, as data. `files` are written to the folder of the session first. */
export interface Launch {
  readonly argv: readonly string[];
  readonly stdin: 'ignore' | 'open' | { readonly text: string };
  readonly files?: Readonly<Record<string, string>> | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

export interface Adapter<State> {
  /** Throws a RepriseError if this kind of agent cannot serve the request. */
  readonly launch: (request: SessionRequest, folder: string) => Launch;
  readonly protocol: (context: ProtocolContext) => Protocol<State>;
  /** Whether the result can only come on standard output, so that closing it ends the session. */
  readonly speaksOnStdout: boolean;
  /** Whether a line that starts like this is part of the answer. Such a line must not be lost. */
  readonly isAnswer: (start: string) => boolean;
  /** Signal that stops the agent so that its session continues best, instead of an interrupt. */
  readonly stopsBy?: 'closed-input' | 'SIGTERM' | undefined;
  /** Whether the same process can continue after a limit. */
  readonly canContinue: boolean;
}

/** Whether the start of a line belongs to a message of the agent, in the formats of Codex and ACP. */
export const isAgentMessage = (start: string): boolean => /agent_?message/i.test(start);

export const event = (given: AgentEvent): Signal => ({ kind: 'event', event: given });
export const send = (message: JsonObject): Signal => ({ kind: 'send', message });
export const verdict = (given: AgentVerdict): Signal => ({ kind: 'verdict', verdict: given });

/** Id of a JSON-RPC message. `0` is a valid id. */
export type RpcId = string | number;

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Json | undefined;
}

export type RpcMessage =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: Json }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Json }
  | { readonly kind: 'result'; readonly id: RpcId; readonly result: Json }
  | { readonly kind: 'error'; readonly id: RpcId | undefined; readonly error: RpcError };

/** Parses a line of JSON-RPC, with or without its version field. Returns `undefined` for other lines. */
export function parseRpc(line: string): RpcMessage | undefined {
  const message = parseObject(line);
  if (!message) return undefined;
  const id = idOf(message);
  const method = textAt(message, 'method');
  if (method !== undefined) {
    const params = message['params'] ?? {};
    return id === undefined
      ? { kind: 'notification', method, params }
      : { kind: 'request', id, method, params };
  }
  if (Object.hasOwn(message, 'error')) return { kind: 'error', id, error: errorOf(message) };
  if (id === undefined || !Object.hasOwn(message, 'result')) return undefined;
  return { kind: 'result', id, result: message['result'] ?? null };
}

const idOf = ({ id }: JsonObject): RpcId | undefined =>
  typeof id === 'string' || typeof id === 'number' ? id : undefined;

function errorOf(message: JsonObject): RpcError {
  const data = at(message, 'error', 'data');
  return {
    code: numberAt(message, 'error', 'code') ?? 0,
    message: textAt(message, 'error', 'message') ?? 'no reason given',
    ...(data === undefined ? {} : { data }),
  };
}

/** Returns the message of an error with the details that some agents put beside it. */
export function rpcErrorText({ message, data }: RpcError): string {
  const detail =
    textAt(data, 'details') ?? textAt(data, 'message') ?? (typeof data === 'string' ? data : undefined);
  return detail && !message.includes(detail) ? `${message}: ${detail}` : message;
}

const longestRawLine = 2000;

/**
 * Parses a line that holds a JSON object. Returns `undefined` for other lines, and for objects that are nested so deeply
 * that they could not be written again.
 */
export function parseObject(line: string): JsonObject | undefined {
  if (!line.trimStart().startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isJsonObject(value) && !isNestedTooDeeply(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const maxDepth = 500;

function isNestedTooDeeply(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth >= maxDepth || Object.values(value).some(inner => isNestedTooDeeply(inner, depth + 1));
}

/** Returns an event with the start of a line. */
export const rawEvent = (line: string) =>
  ({
    type: 'raw',
    line: line.length > longestRawLine ? `${line.slice(0, longestRawLine)}…` : line,
  }) as const;

/** Returns the value at a path, or `undefined`. Never throws, because agents omit and change fields at any time. */
export const at = (value: Json | undefined, ...path: readonly string[]): Json | undefined =>
  path.reduce<Json | undefined>(
    (inner, key) => (isJsonObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined),
    value,
  );

export const textAt = (value: Json | undefined, ...path: readonly string[]): string | undefined => {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : undefined;
};

export const numberAt = (value: Json | undefined, ...path: readonly string[]): number | undefined => {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : undefined;
};

export const listAt = (value: Json | undefined, ...path: readonly string[]): readonly Json[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** Returns the own entry of a record whose keys come from an agent, where `constructor` is a key like any other. */
export const own = <Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
