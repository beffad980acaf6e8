import type { Json, JsonObject } from '../../../src/core/json.ts';

/** What the model wants the agent to do. It becomes a call of whichever tool the agent offers for that. */
export type Action =
  | { readonly write: { readonly path: string; readonly content: string } }
  | { readonly read: string }
  | { readonly edit: { readonly path: string; readonly from: string; readonly to: string } }
  | {
      readonly run: string;
      /** Asks to run it outside of the sandbox, where the agent has one. */
      readonly unconfined?: boolean;
    }
  | { readonly answer: JsonObject };

/** One answer of the model: words and wishes, or something that goes wrong. */
export interface Reply {
  readonly think?: string;
  readonly say?: string;
  readonly actions?: readonly Action[];
  /** An HTTP status instead of an answer, for the first so many requests or for ever. */
  readonly fail?: Failure;
  /** Begins the answer, and then is silent until the agent goes away. */
  readonly hangs?: boolean;
  /** The answer waits for this. A function is called when it is asked for. */
  readonly after?: Promise<unknown> | ((asked: Asked) => Promise<unknown>);
}

export interface Failure {
  readonly status: number;
  readonly message: string;
  readonly times?: number;
  /** In how many seconds a limit is over; not all interfaces have a place for it. */
  readonly resetsInS?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * What the model says, by a word that the prompt has in it as `[[word]]`. The replies follow one another as the conversation goes
 * on after that prompt, so that many agents can share one model, and an agent that asks again is told the same. A
 * function says what depends on more than that.
 */
export type ModelScript = Readonly<Record<string, readonly Reply[] | ((asked: Asked) => Reply)>>;

export interface Asked {
  /** All that was said so far, by either side, and what the agent says of its surroundings. */
  readonly told: string;
  /** How many answers the model has given since the prompt. */
  readonly index: number;
}

/** A request of an agent, in the terms of all interfaces. */
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
  /** Whether it takes a text instead of JSON. */
  readonly takesText: boolean;
  readonly namespace?: string | undefined;
}

/** A part of an answer, ready to be put into the words of an interface. */
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
  /** The word of the script that the prompt has in it. */
  readonly word: string;
  /** How many answers the model has given since that prompt. */
  readonly index: number;
  readonly reply: Reply;
}

/** The words that a prompt may have in it. */
export type WordsIn = (prompt: string) => readonly string[];

export interface Cued {
  readonly conversation: Conversation;
  readonly wordsIn: WordsIn;
}

/** The reply that is due; `undefined` if no prompt of the conversation is in the script. */
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

/** Everything that the agent told the model. */
export const toldIn = ({ system, turns }: Conversation): string =>
  [system, ...turns.map(({ text }) => text)].join('\n');

export const wordsInBrackets: WordsIn = prompt =>
  [...prompt.matchAll(/\[\[([\w-]+)\]\]/g)].flatMap(([, word]) => word ?? []);
