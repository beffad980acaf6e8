import type { Json, JsonObject } from '../core/json.ts';
import { at, numberAt, parseObject, textAt } from './json-line.ts';

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
