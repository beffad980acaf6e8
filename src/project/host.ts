import type { SessionFactory } from '../agents/session.ts';
import type { Clock, Ids } from '../core/time.ts';
import type { World } from '../effects/world.ts';
import type { Environment, ShellRunner } from '../engine/environment.ts';
import type { EventStore } from '../store/port.ts';
import { isUtf8Locale } from '../terminal/glyphs.ts';
import type { WorkflowModel } from '../workflow/model.ts';

/** A gate that waits for an answer. */
export interface Question {
  readonly step: string;
  readonly message: string;
  readonly choices: readonly string[];
}

/** What stands between a command and the outside. Commands have the real thing, unless a test case stands in for it. */
export interface Host {
  readonly world: World;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** SQLite in the state folder if it is absent; `undefined` if there is none and nobody may make one. */
  readonly openStore?: OpenStore | undefined;
  /** Makes others of the surroundings in which a command would work: to have it work somewhere else than on this machine. */
  readonly surround?: ((environment: Environment) => Environment) | undefined;
  /** Gives what was made before under the same name: for commands that are played a thousand times in one folder. */
  readonly once?: Once | undefined;
  /** Makes another workflow of the one that was loaded, to see what would have happened. */
  readonly revise?: ((model: WorkflowModel) => WorkflowModel) | undefined;
}

/** `make` must give the same whenever it is called. */
export type Once = <T>(name: string, make: () => Promise<T>) => Promise<T>;

/** Makes each thing once. What could not be made is made again when it is asked for. */
export function rememberOnce(): Once {
  const made = new Map<string, Promise<unknown>>();
  return <T>(name: string, make: () => Promise<T>): Promise<T> => {
    const known = made.get(name) as Promise<T> | undefined;
    if (known) return known;
    const making = make();
    made.set(name, making);
    making.catch(() => made.delete(name));
    return making;
  };
}

/** Makes it every time. */
export const everyTime: Once = (_, make) => make();

export type OpenStore = (
  stateDir: string,
  options: { readonly readonly: boolean },
) => Promise<EventStore | undefined>;

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

/** How text for one of the two streams may look. */
export const lookOf = (io: CommandIo, stream: 'out' | 'err') => ({
  color: io.color[stream],
  columns: io.columns,
  unicode: isUtf8Locale(io.env),
});
