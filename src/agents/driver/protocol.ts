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
 * How one kind of agent talks: a pure state machine over the lines that it prints. It says what happened, what to
 * send back and what to ask the host; the driver does it.
 */
export interface Protocol<State> {
  readonly open: () => Step<State>;
  /** Any text may come, and nothing may throw. */
  readonly take: (state: State, line: string) => Step<State>;
  readonly answer: (state: State, question: HostQuestion, answer: HostAnswer) => Step<State>;
  /** What to say to stop the work; nothing if only a signal helps. */
  readonly interrupt: (state: State) => Step<State>;
  /** The agent has ended without a verdict. `undefined`: that is a failure, described by how it ended. */
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
  | { readonly kind: 'verdict'; readonly verdict: AgentVerdict };

/** How the agent itself says that it ended, before we look at what it gave. */
export type AgentVerdict =
  | { readonly kind: 'ok'; readonly text: string; readonly structured?: Json | undefined }
  | { readonly kind: 'failed'; readonly error: ErrorData }
  | { readonly kind: 'limit'; readonly resetsAt?: Timestamp | undefined; readonly error: ErrorData }
  /** It was told to stop, or says so. */
  | { readonly kind: 'stopped' };

/** What a protocol may know beyond its own lines. */
export interface ProtocolContext {
  readonly request: SessionRequest;
  readonly rule: (tool: string, input: Json) => Ruling;
  readonly now: () => number;
}

/** The program to start, as data. `files` are written into `folder` first. */
export interface Launch {
  readonly argv: readonly string[];
  readonly stdin: 'ignore' | 'open' | { readonly text: string };
  readonly files?: Readonly<Record<string, string>> | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

export interface Adapter<State> {
  /** Throws a RepriseError if the request cannot be met by this kind of agent. */
  readonly launch: (request: SessionRequest, folder: string) => Launch;
  readonly protocol: (context: ProtocolContext) => Protocol<State>;
  /** The result can come on standard output only, so that closing it is the end. */
  readonly speaksOnStdout: boolean;
  /** After a limit, the same process can be told to go on. */
  readonly canGoOn: boolean;
}

export const event = (given: AgentEvent): Signal => ({ kind: 'event', event: given });
export const send = (message: JsonObject): Signal => ({ kind: 'send', message });
export const verdict = (given: AgentVerdict): Signal => ({ kind: 'verdict', verdict: given });

/** An id is any text or number; 0 is one, too. */
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

/** A line of JSON-RPC, with or without its version field; `undefined` if it is none. */
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
    message: textAt(message, 'error', 'message') ?? 'no reason was given',
    ...(data === undefined ? {} : { data }),
  };
}

/** What an error says, with the details that agents put beside the message. */
export function rpcErrorText({ message, data }: RpcError): string {
  const detail =
    textAt(data, 'details') ?? textAt(data, 'message') ?? (typeof data === 'string' ? data : undefined);
  return detail && !message.includes(detail) ? `${message}: ${detail}` : message;
}

const longestRawLine = 2000;

/** The object that a line holds; `undefined` if it holds anything else. */
export function parseObject(line: string): JsonObject | undefined {
  if (!line.trimStart().startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A line as an event may carry it. */
export const rawEvent = (line: string) =>
  ({
    type: 'raw',
    line: line.length > longestRawLine ? `${line.slice(0, longestRawLine)}…` : line,
  }) as const;

/** Agents leave fields out, or fill them with something else, whenever they like: these never fail. */
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

/** An entry of a record whose keys an agent chose: `constructor` is one like any other. */
export const own = <Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
