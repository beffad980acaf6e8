import type { ServerResponse } from 'node:http';
import type { JsonObject } from '../../../src/core/json.ts';

/** How the answer to one request is written. */
export interface Answering {
  /** Id that is unique to this request. */
  readonly id: string;
  readonly model: string;
  readonly usage: { readonly input: number; readonly output: number };
  /** Whether the answer stops after its first words. */
  readonly hangs: boolean;
}

/** Event of a stream. Interfaces without types of events leave it out. */
export type ServerEvent = JsonObject & { readonly type?: string };

export function beginStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
}

export const writeEvents = (response: ServerResponse, events: readonly ServerEvent[]): void => {
  for (const event of events) {
    const type = event.type === undefined ? '' : `event: ${event.type}\n`;
    response.write(`${type}data: ${JSON.stringify(event)}\n\n`);
  }
};

/** Splits text into up to three pieces, as models stream it. */
export function pieces(text: string): readonly string[] {
  const size = Math.max(1, Math.ceil(text.length / 3));
  return Array.from({ length: Math.max(1, Math.ceil(text.length / size)) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  );
}
