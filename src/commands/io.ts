import type { Host } from '../project/host.ts';
import type { Question } from './question.ts';

/** What a command is given of its surroundings. Nothing else in here looks at the process that it runs in. */
export interface CommandIo {
  /** Data: results, documents, NDJSON. */
  out(text: string): void;
  /** Resolves when all of it has been handed over. Whoever writes much waits for it, so that it does not pile up. */
  flushed?(): Promise<void>;
  /** For people. */
  err(text: string): void;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly isTTY: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  readonly columns: number;
  readonly color: { readonly out: boolean; readonly err: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute. */
  readonly cwd: string;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Aborted when the process is to stop; its reason is what history will say. */
  readonly interrupt: AbortSignal;
  /** Stands in for the real world: in test cases. */
  readonly host?: Host | undefined;
  /** Where a live view may be drawn; absent when nobody watches. */
  readonly terminal?: NodeJS.WriteStream | undefined;
  /** Calls back for every key that is pressed, Ctrl-C included, until what it gives back is called; absent without a keyboard. */
  readonly listenToKeys?: ((pressed: (key: string) => void) => () => void) | undefined;
  /** Puts a question to the person at the keyboard; absent when there is none. `undefined`: left for later. */
  readonly ask?: ((question: Question) => Promise<string | undefined>) | undefined;
}

/** Writes the text as one or more whole lines. */
export const writeLines = (write: (text: string) => void, text: string): void =>
  write(text.endsWith('\n') ? text : `${text}\n`);
