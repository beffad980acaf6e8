import type { Json, JsonObject } from '../../../src/core/json.ts';

/** Action that the model requests. It becomes a call to the matching tool of the agent. */
export type Action =
  | { readonly write: { readonly path: string; readonly content: string } }
  | { readonly read: string }
  | { readonly edit: { readonly path: string; readonly from: string; readonly to: string } }
  | {
      readonly run: string;
      /** Whether to ask for a run outside the sandbox, if the agent has one. */
      readonly unconfined?: boolean;
    }
  | { readonly answer: JsonObject }
  /** A tool that only one agent has. */
  | { readonly use: { readonly tool: string; readonly input: JsonObject } };

/** One answer of the model: text and actions, or a failure. */
export interface Reply {
  readonly think?: string;
  readonly say?: string;
  readonly actions?: readonly Action[];
  /** HTTP error instead of an answer, for the first `times` requests or always. */
  readonly fail?: Failure;
  /** Whether the answer starts and then hangs until the agent disconnects. */
  readonly hangs?: boolean;
  /** Promise that delays the answer. A function is called for every request. */
  readonly after?: Promise<unknown> | ((asked: Asked) => Promise<unknown>);
}

export interface Failure {
  readonly status: number;
  readonly message: string;
  readonly times?: number;
  /** Seconds until a limit resets. Only the Responses API reports it. */
  readonly resetsInS?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Replies of the model by the word that a prompt contains as `[[word]]`. The position in the conversation after that prompt
 * selects the reply, so many agents can share one model and a repeated request gets the same answer. A function computes
 * replies that depend on more than the position.
 */
export type ModelScript = Readonly<Record<string, readonly Reply[] | ((asked: Asked) => Reply)>>;

export interface Asked {
  /** System prompt and all turns so far, of both sides. */
  readonly told: string;
  /** Number of answers since the prompt. */
  readonly index: number;
}

/** Request of an agent, independent of the API. */
export interface Conversation {
  readonly turns: readonly ConversationTurn[];
  readonly tools: readonly OfferedTool[];
  readonly system: string;
}

export interface ConversationTurn {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

export interface OfferedTool {
  readonly name: string;
  /** Whether the tool takes text instead of JSON. */
  readonly takesText: boolean;
  readonly namespace?: string | undefined;
}

/** Part of an answer, independent of the API. */
export type Part =
  | { readonly kind: 'thought'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly input: Json;
      readonly namespace?: string | undefined;
    };

export interface Cue {
  /** Word of the script that the prompt contains. */
  readonly word: string;
  /** Number of answers since that prompt. */
  readonly index: number;
  readonly reply: Reply;
}

/** Returns the words of the script that a prompt contains. */
export type WordsIn = (prompt: string) => readonly string[];

export interface Cued {
  readonly conversation: Conversation;
  readonly wordsIn: WordsIn;
}

/** Finds the next reply; `undefined` if the script has no word of the conversation. */
export function cueOf(script: ModelScript, { conversation, wordsIn }: Cued): Cue | undefined {
  const { turns } = conversation;
  const found = turns.flatMap(({ role, text }, at) =>
    role === 'user' ? wordsIn(text).flatMap(word => (Object.hasOwn(script, word) ? { word, at } : [])) : [],
  );
  const last = found.at(-1);
  if (!last) return undefined;
  const { word, at } = last;
  const index = turns.slice(at + 1).filter(({ role }) => role === 'assistant').length;
  return { word, index, reply: replyTo(script[word] ?? [], { told: toldIn(conversation), index }) };
}

function replyTo(replies: ModelScript[string], asked: Asked): Reply {
  if (typeof replies === 'function') return replies(asked);
  return replies[asked.index] ?? { say: `Nothing is scripted for answer ${asked.index + 1}.` };
}

/** Whole text of a conversation. */
export const toldIn = ({ system, turns }: Conversation): string =>
  [system, ...turns.map(({ text }) => text)].join('\n');

export const wordsInBrackets: WordsIn = prompt =>
  [...prompt.matchAll(/\[\[([\w-]+)\]\]/g)].flatMap(([, word]) => word ?? []);
