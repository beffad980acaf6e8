import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseObject, textAt } from '../../../src/agents/driver/protocol.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import { messageEvents, messagesError, readMessages, wholeMessage } from './anthropic.ts';
import { readResponses, responseEvents, responsesError } from './responses.ts';
import {
  type Conversation,
  cueOf,
  type Failure,
  type ModelScript,
  type Part,
  toldIn,
  type WordsIn,
  wordsInBrackets,
} from './script.ts';
import { type Answering, beginStream, type ServerEvent, writeEvents } from './sse.ts';
import { partsOf } from './tool-calls.ts';

/** A request that an agent made to the model. */
export interface ModelRequest {
  /** The word of the script that it was answered by; absent for what agents ask on the side. */
  readonly word?: string | undefined;
  readonly index: number;
  readonly conversation: Conversation;
  /** Everything that was said in it. */
  readonly told: string;
  readonly body: JsonObject;
}

/** A model that says what a script says, on loopback. */
export interface FakeModel {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  /** What agents wanted of other hosts, if they were told to use this one as their proxy. Nobody got it. */
  readonly outside: readonly string[];
  /** Resolves when so many requests for that word have come in. */
  asked(word: string, times?: number): Promise<void>;
  /** What the model has been asked for that word, each time. */
  requestsFor(word: string): readonly ModelRequest[];
  close(): Promise<void>;
}

interface Interface {
  readonly read: (body: JsonObject) => Conversation;
  readonly error: (failure: Failure) => JsonObject;
  readonly events: (parts: readonly Part[], answering: Answering) => readonly ServerEvent[];
  readonly whole?: (parts: readonly Part[], answering: Answering) => JsonObject;
}

const interfaces: Readonly<Record<string, Interface>> = {
  '/v1/messages': { read: readMessages, error: messagesError, events: messageEvents, whole: wholeMessage },
  '/v1/responses': { read: readResponses, error: responsesError, events: responseEvents },
};

/** What one answer of the script uses, always, so that sums can be foretold; what is asked on the side is free. */
const usagePerAnswer = { input: 100, output: 10 } as const;

/**
 * Starts a model for Claude Code (Anthropic's messages) and Codex (OpenAI's responses). `wordsIn`: where prompts have the
 * words of the script, if not in brackets.
 */
export async function startFakeModel(
  script: ModelScript,
  wordsIn: WordsIn = wordsInBrackets,
): Promise<FakeModel> {
  const requests: ModelRequest[] = [];
  const outside: string[] = [];
  const waiting = new Set<() => void>();
  const requestsFor = (word: string) => requests.filter(request => request.word === word);

  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? '/', 'http://model').pathname;
    const body = parseObject(await textOf(request));
    const spoken = interfaces[path];
    if (!spoken || !body)
      return replyWith(response, path.endsWith('/count_tokens') ? 200 : 404, { input_tokens: 1 });
    const conversation = spoken.read(body);
    // What comes without tools is asked on the side, such as a title for the session.
    const cue = conversation.tools.length > 0 ? cueOf(script, { conversation, wordsIn }) : undefined;
    requests.push({
      word: cue?.word,
      index: cue?.index ?? 0,
      conversation,
      told: toldIn(conversation),
      body,
    });
    const tries = requestsFor(cue?.word ?? '').filter(({ index }) => index === cue?.index).length;
    const reply = cue?.reply ?? { say: 'A title' };
    const { fail } = reply;
    for (const wake of waiting) wake();
    const { after } = reply;
    await (typeof after === 'function'
      ? after({ told: toldIn(conversation), index: cue?.index ?? 0 })
      : after);
    if (fail && tries <= (fail.times ?? Number.POSITIVE_INFINITY))
      replyWith(response, fail.status, spoken.error(fail), fail.headers);
    else {
      const id = String(requests.length).padStart(4, '0');
      const model = textAt(body, 'model') ?? 'fake';
      const usage = cue ? usagePerAnswer : { input: 0, output: 0 };
      const answering = { id, model, usage, hangs: reply.hangs === true };
      const parts = partsOf(reply, conversation);
      if (body['stream'] !== true && spoken.whole) replyWith(response, 200, spoken.whole(parts, answering));
      else {
        beginStream(response);
        writeEvents(response, spoken.events(parts, answering));
        if (!answering.hangs) response.end();
      }
    }
  });
  server.on('connect', (request, socket) => {
    outside.push(request.url ?? '');
    socket.on('error', () => {});
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    outside,
    requestsFor,
    asked: async (word, times = 1) => {
      while (requestsFor(word).length < times) await new Promise<void>(resolve => waiting.add(resolve));
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function replyWith(
  response: ServerResponse,
  status: number,
  body: JsonObject,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
