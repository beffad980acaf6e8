import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseObject, textAt } from '../../../src/agents/driver/protocol.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import { messageEvents, messagesError, readMessages, wholeMessage } from './anthropic.ts';
import { chatError, chatEvents, readChat, wholeChat } from './chat.ts';
import { geminiError, geminiEvents, readGemini, wholeGemini } from './gemini.ts';
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

/** Request of an agent to the model. */
export interface ModelRequest {
  /** Word of the script that selected the answer; absent for side requests, such as titles. */
  readonly word?: string | undefined;
  readonly index: number;
  readonly conversation: Conversation;
  /** Whole text of the conversation. */
  readonly told: string;
  readonly body: JsonObject;
}

/** Scripted model that listens on loopback. */
export interface FakeModel {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  /** Hosts that agents tried to reach through this server as their proxy. All were refused. */
  readonly outside: readonly string[];
  /** Resolves when at least `times` requests for the word have arrived. */
  asked(word: string, times?: number): Promise<void>;
  /** Requests for the word, in order. */
  requestsFor(word: string): readonly ModelRequest[];
  close(): Promise<void>;
}

interface Interface {
  readonly read: (body: JsonObject) => Conversation;
  readonly error: (failure: Failure) => JsonObject;
  readonly events: (parts: readonly Part[], answering: Answering) => readonly ServerEvent[];
  readonly whole?: (parts: readonly Part[], answering: Answering) => JsonObject;
  /** Last line of a stream. */
  readonly end?: string;
}

const interfaces: Readonly<Record<string, Interface>> = {
  '/v1/messages': { read: readMessages, error: messagesError, events: messageEvents, whole: wholeMessage },
  '/v1/responses': { read: readResponses, error: responsesError, events: responseEvents },
  '/v1/chat/completions': {
    read: readChat,
    error: chatError,
    events: chatEvents,
    whole: wholeChat,
    end: 'data: [DONE]\n\n',
  },
};

const gemini: Interface = { read: readGemini, error: geminiError, events: geminiEvents, whole: wholeGemini };

const interfaceAt = (path: string): Interface | undefined =>
  /:(stream)?generateContent$/i.test(path) ? gemini : interfaces[path];

/** Tokens of every scripted answer, fixed so that tests know the sums. Side requests are free. */
const usagePerAnswer = { input: 100, output: 10 } as const;

/**
 * Starts a model for Claude Code (Anthropic's Messages API) and Codex (OpenAI's Responses API). `wordsIn` finds the words of
 * the script in a prompt. Defaults to words in double brackets.
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
    const spoken = interfaceAt(path);
    if (!spoken || !body)
      return replyWith(response, path.endsWith('/count_tokens') ? 200 : 404, { input_tokens: 1 });
    const conversation = spoken.read(body);
    // A request without tools is a side request, such as one for the title of the session.
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
      const isStreamed = body['stream'] === true || path.endsWith(':streamGenerateContent');
      if (!isStreamed && spoken.whole) replyWith(response, 200, spoken.whole(parts, answering));
      else {
        beginStream(response);
        writeEvents(response, spoken.events(parts, answering));
        if (!answering.hangs) response.end(spoken.end);
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
