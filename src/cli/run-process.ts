import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { ReadStream } from 'node:tty';
import { inspect } from 'node:util';
import { patienceMs, RepriseError, signalReasons, stoppedBy, toErrorData } from '../core/index.ts';
import {
  type ApprovalQuestion,
  type CommandIo,
  exitCodeOfError,
  exitCodes,
  writeLines,
} from '../project/index.ts';
import { safeText } from '../view/index.ts';
import { runProgram } from './program.ts';

/** Time that a command gets after a second Ctrl-C to stop its agents and record its end. A third Ctrl-C does not wait. */
const lastWordsMs = 2_000;

/** The composition root: runs one command in this process, from its arguments to its exit code. */
export async function runProcess(args: readonly string[]): Promise<void> {
  const { stdin, stdout, stderr, env } = process;
  const out = quietWriter(stdout);
  const err = quietWriter(stderr);
  const stop = createStop();
  const isCi = Boolean(env['CI']) && env['CI'] !== 'false' && env['CI'] !== '0';
  const isWatched = stderr.isTTY === true && !isCi && env['TERM'] !== 'dumb';
  const io: CommandIo = {
    out: out.write,
    flushed: out.flushed,
    err: err.write,
    stdin,
    isTTY: { stdin: stdin.isTTY === true, stdout: stdout.isTTY === true, stderr: stderr.isTTY === true },
    columns: (stdout.isTTY ? stdout.columns : stderr.columns) || 80,
    color: colorsOf(env, { out: stdout, err: stderr }),
    env: { ...env, ...stop.marker },
    cwd: process.cwd(),
    now: () => Date.now(),
    interrupt: stop.signal,
    hurry: stop.hurry,
    ...(isWatched ? { terminal: stderr } : {}),
    ...(isWatched && stdin.isTTY
      ? {
          ask: question => askOnTerminal(question, { input: stdin, output: stderr, stop }),
          listenToKeys: pressed => listenToKeys(stdin, pressed),
        }
      : {}),
  };

  let isLeaving = false;
  // A step's function that calls process.exit() must not make an unfinished run look like a success.
  process.on('exit', code => {
    if (isLeaving || code !== 0) return;
    writeSync(
      stderr.fd,
      'error[INTERNAL]: the process exited before the command was done (did a step call process.exit?)\n',
    );
    process.exitCode = exitCodes.failed;
  });
  const leave = async (code: number): Promise<never> => {
    await Promise.all([out.flushed(), err.flushed()]);
    isLeaving = true;
    process.exit(stop.exitCode !== undefined && code !== exitCodes.ok ? stop.exitCode : code);
  };
  // Never rejects: an unhandled rejection would call it again, and so on without end.
  const fail = async (thrown: unknown): Promise<number> => {
    const error = isOutOfFiles(thrown) ? tooFewFiles(thrown) : thrown;
    const format = await import('../terminal/index.ts').then(
      ({ formatError }) => formatError,
      () => plainError,
    );
    writeLines(io.err, format(error, { color: io.color.err }));
    if (env['REPRISE_DEBUG'] && error instanceof Error) writeLines(io.err, inspect(error));
    return exitCodeOfError(error);
  };
  const crash = async (error: unknown) => {
    const code = await fail(error instanceof RepriseError ? error : uncaught(error));
    await stop.endChildren();
    await leave(code);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);

  const command = runProgram(args, io).catch(fail);
  stop.onForce(async () => {
    await Promise.race([command, new Promise(resolve => setTimeout(resolve, lastWordsMs))]);
    await stop.endChildren();
    await leave(exitCodes.failed);
  });
  await leave(await command);
}

const uncaught = (cause: unknown) =>
  new RepriseError('STEP_FAILED', `an error was thrown outside of any step: ${toErrorData(cause).message}`, {
    cause,
    hint: 'set REPRISE_DEBUG=1 to see its stack; after fixing the problem, continue with: reprise resume',
  });

/** Returns true if the limit of open files is reached, in this process or in the system. */
function isOutOfFiles(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'EMFILE' || code === 'ENFILE';
}

const tooFewFiles = (cause: unknown) =>
  new RepriseError('FILE_LIMIT', 'too many open files: the limit of the system is too low', {
    cause,
    hint: 'raise the limit: ulimit -n 1024',
  });

/** For a process that cannot load more modules, for example because it may not open more files. */
const plainError = (error: unknown): string => {
  const { code, message, hint } = toErrorData(error);
  return `error[${code}]: ${safeText(message)}${hint ? `\n  hint: ${safeText(hint)}` : ''}`;
};

/** A stream that its reader may close early. Later writes are dropped. */
interface QuietWriter {
  readonly write: (text: string) => void;
  /** Resolves when everything written so far has been handed to the stream. */
  flushed(): Promise<void>;
}

/** Ignores a closed pipe: `reprise list | head -1` is not an error, and a closed terminal must not stop a run. */
function quietWriter(stream: NodeJS.WriteStream): QuietWriter {
  let closed = false;
  stream.on('error', error => {
    closed = true;
    // EPIPE: the reader closed the pipe. EIO: the terminal was closed.
    if (!('code' in error) || (error.code !== 'EPIPE' && error.code !== 'EIO')) throw error;
  });
  return {
    write: text => {
      if (!closed) stream.write(text);
    },
    flushed: () =>
      new Promise(resolve => {
        if (closed) resolve();
        else stream.write('', () => resolve());
      }),
  };
}

interface Stream {
  readonly isTTY?: boolean | undefined;
}

/** Decides which streams get colors. `NO_COLOR` overrides `FORCE_COLOR`, and both override the kind of stream. */
export function colorsOf(
  env: Readonly<Record<string, string | undefined>>,
  streams: { readonly out: Stream; readonly err: Stream },
): { readonly out: boolean; readonly err: boolean } {
  const { NO_COLOR: noColor, FORCE_COLOR: force, TERM: term } = env;
  if (noColor) return { out: false, err: false };
  if (force !== undefined) {
    const color = force !== '0' && force !== 'false';
    return { out: color, err: color };
  }
  const capable = ({ isTTY }: Stream) => isTTY === true && term !== 'dumb';
  return { out: capable(streams.out), err: capable(streams.err) };
}

/**
 * Calls `pressed` for every key, without waiting for Enter, until the returned function is called. Ctrl-C then arrives as
 * a key and sends no signal, so the callback has to handle it.
 */
export function listenToKeys(input: ReadStream, pressed: (key: string) => void): () => void {
  const onData = (keys: string | Buffer) => {
    for (const key of String(keys)) pressed(key);
  };
  input.setRawMode(true);
  input.on('data', onData);
  input.resume();
  return () => {
    input.off('data', onData);
    input.pause();
    input.setRawMode(false);
  };
}

interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly stop: Pick<Stop, 'signal' | 'interrupt'>;
}

/**
 * Asks until the user types one of the choices or an unambiguous prefix of one. Resolves with `undefined` on an empty
 * line, Ctrl-C or the end of the input, which leaves the question unanswered.
 */
export async function askOnTerminal(
  { step, message, choices }: ApprovalQuestion,
  { input, output, stop }: Terminal,
): Promise<string | undefined> {
  const lines = createInterface({ input, output });
  const closing = new AbortController();
  const signal = AbortSignal.any([stop.signal, closing.signal]);
  // `question` never settles after its input has ended.
  lines.once('close', () => closing.abort());
  lines.on('SIGINT', () => {
    stop.interrupt();
    lines.close();
  });
  try {
    output.write(safeText(`\n${step}: ${message}\n`));
    for (;;) {
      const typed = (
        await lines.question(`${safeText(choices.join(' / '))} (Enter to answer later) > `, { signal })
      ).trim();
      if (typed === '') return undefined;
      const matches = choices.includes(typed) ? [typed] : choices.filter(choice => choice.startsWith(typed));
      if (matches.length === 1) return matches[0];
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return undefined;
    throw error;
  } finally {
    lines.close();
  }
}

/** Requests to stop this process. */
interface Stop {
  /** Aborted by the first request. Its reason is recorded in the history. */
  readonly signal: AbortSignal;
  /** Aborted by the second request, or when the patience after the first one is over. */
  readonly hurry: AbortSignal;
  /** Exit code for the first signal (128 plus its number). `undefined` until a signal arrives. */
  readonly exitCode: number | undefined;
  /** Environment variable that marks every process started from here. */
  readonly marker: Readonly<Record<string, string>>;
  /** Acts as if Ctrl-C had been pressed. */
  readonly interrupt: () => void;
  /** Sets the handler for a second Ctrl-C. */
  onForce(force: () => Promise<void>): void;
  /** Kills every process started from here, without a grace period. */
  endChildren(): Promise<void>;
}

const numbers = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

/**
 * Listens for SIGINT, SIGTERM and SIGHUP. The first one asks to stop and gives agents time to reach a point at which
 * nothing is lost, the second stops them at once, the third exits.
 */
function createStop(): Stop {
  const controller = new AbortController();
  const hurry = new AbortController();
  const marker = { REPRISE_PROCESS: randomUUID() };
  let exitCode: number | undefined;
  let force = async (): Promise<void> => {};
  let forced = false;
  const handle = (name: keyof typeof numbers) => {
    if (exitCode === undefined) {
      exitCode = 128 + numbers[name];
      const reason = signalReasons[name];
      controller.abort(reason);
      setTimeout(() => hurry.abort(), patienceMs[stoppedBy(reason)]).unref();
    } else if (!forced) {
      forced = true;
      hurry.abort();
      void force();
    } else process.exit(exitCode);
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => handle(name));
  return {
    signal: controller.signal,
    hurry: hurry.signal,
    get exitCode() {
      return exitCode;
    },
    marker,
    interrupt: () => handle('SIGINT'),
    onForce: next => {
      force = next;
    },
    endChildren: async () => {
      const { endTrees } = await import('../process/tree.ts');
      await endTrees({ roots: [], marked: marker, graceMs: 0 });
    },
  };
}
