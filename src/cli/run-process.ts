import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { ReadStream } from 'node:tty';
import { inspect } from 'node:util';
import { RepriseError, toErrorData } from '../core/errors.ts';
import { exitCodeOfError, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, type Question, writeLines } from '../project/host.ts';
import { safeText } from '../view/safe-text.ts';
import { runProgram } from './program.ts';
import { createStop, type Stop } from './stop.ts';

/**
 * How long a command that was told to stop for good may still take to write its end, and a worker to remove the workspace
 * of a run that has ended: nobody takes that over. It leaves as soon as it is done; a third Ctrl-C does not wait.
 */
const lastWordsMs = 2_000;

/** The composition root: one command in this process, from its arguments to its exit code. */
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
    writeSync(stderr.fd, 'error[INTERNAL]: something ended the process before the command was done\n');
    process.exitCode = exitCodes.failed;
  });
  const leave = async (code: number): Promise<never> => {
    await Promise.all([out.flushed(), err.flushed()]);
    isLeaving = true;
    process.exit(stop.exitCode !== undefined && code !== exitCodes.ok ? stop.exitCode : code);
  };
  const fail = async (error: unknown): Promise<number> => {
    const { formatError } = await import('../terminal/index.ts');
    writeLines(io.err, formatError(error, { color: io.color.err }));
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
    await stop.endChildren();
    await Promise.race([command, new Promise(resolve => setTimeout(resolve, lastWordsMs))]);
    await leave(exitCodes.failed);
  });
  await leave(await command);
}

const uncaught = (cause: unknown) =>
  new RepriseError(
    'STEP_FAILED',
    `an error was thrown where no step could catch it: ${toErrorData(cause).message}`,
    {
      cause,
      hint: 'see where it came from with REPRISE_DEBUG=1; once it is mended, go on with: reprise resume',
    },
  );

/** A stream that whoever reads it may close early: what is written after that goes nowhere. */
interface QuietWriter {
  readonly write: (text: string) => void;
  /** Resolves when all of it has been handed over. */
  flushed(): Promise<void>;
}

/** `reprise list | head -1` is no reason to complain, and watching a run is no reason to stop it. */
function quietWriter(stream: NodeJS.WriteStream): QuietWriter {
  let closed = false;
  stream.on('error', error => {
    closed = true;
    // Nobody reads the pipe, or the terminal is gone.
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

/** `NO_COLOR` wins over `FORCE_COLOR`, and both over what the streams are. */
export function colorsOf(
  env: Readonly<Record<string, string | undefined>>,
  streams: { readonly out: Stream; readonly err: Stream },
): { readonly out: boolean; readonly err: boolean } {
  const { NO_COLOR: never, FORCE_COLOR: force, TERM: term } = env;
  if (never) return { out: false, err: false };
  if (force !== undefined) {
    const color = force !== '0' && force !== 'false';
    return { out: color, err: color };
  }
  const capable = ({ isTTY }: Stream) => isTTY === true && term !== 'dumb';
  return { out: capable(streams.out), err: capable(streams.err) };
}

/**
 * Calls back for every key that is pressed, without waiting for Enter, until what it gives back is called. Ctrl-C is then
 * a key like any other: whoever listens has to know it.
 */
export function listenToKeys(input: ReadStream, pressed: (key: string) => void): () => void {
  const hear = (keys: string | Buffer) => {
    for (const key of String(keys)) pressed(key);
  };
  input.setRawMode(true);
  input.on('data', hear);
  input.resume();
  return () => {
    input.off('data', hear);
    input.pause();
    input.setRawMode(false);
  };
}

interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly stop: Pick<Stop, 'signal' | 'interrupt'>;
}

/** Asks until one of the choices, or a beginning that only one has, is typed. Nothing, or Ctrl-C: left for later. */
export async function askOnTerminal(
  { step, message, choices }: Question,
  { input, output, stop }: Terminal,
): Promise<string | undefined> {
  const lines = createInterface({ input, output });
  const closing = new AbortController();
  const signal = AbortSignal.any([stop.signal, closing.signal]);
  // A question is never answered once its input has ended.
  lines.once('close', () => closing.abort());
  lines.on('SIGINT', () => {
    stop.interrupt();
    lines.close();
  });
  try {
    output.write(safeText(`\n${step}: ${message}\n`));
    for (;;) {
      const typed = (
        await lines.question(`${safeText(choices.join(' / '))} (empty: later) > `, { signal })
      ).trim();
      if (typed === '') return undefined;
      const fitting = choices.includes(typed) ? [typed] : choices.filter(choice => choice.startsWith(typed));
      if (fitting.length === 1) return fitting[0];
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return undefined;
    throw error;
  } finally {
    lines.close();
  }
}
