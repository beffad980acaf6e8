import type { ErrorData } from '../../core/errors.ts';
import type { Json, JsonObject } from '../../core/json.ts';
import type { Timestamp } from '../../core/time.ts';
import type { Ruling } from '../ruling.ts';
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
  readonly ended: (state: State, exitCode: number | undefined) => Verdict | undefined;
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
  | { readonly kind: 'verdict'; readonly verdict: Verdict };

/** How the agent itself says that it ended, before we look at what it gave. */
export type Verdict =
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
export const verdict = (given: Verdict): Signal => ({ kind: 'verdict', verdict: given });
