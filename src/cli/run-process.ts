import { writeSync } from 'node:fs';
import { inspect } from 'node:util';
import { RepriseError, toErrorData } from '../core/errors.ts';
import { exitCodeOfError, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { askOnTerminal } from './ask.ts';
import { colorsOf } from './colors.ts';
import { listenToKeys } from './keys.ts';
import { runProgram } from './program.ts';
import { createStop } from './stop.ts';
import { quietWriter } from './writer.ts';

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
