import { join } from 'node:path';
import { signalReasons } from '../../core/index.ts';
import type { Keys, World } from '../../effects/index.ts';
import { isLockFree } from '../../git/index.ts';
import type { CommandIo, Host } from '../../project/index.ts';
import type { CaseSignal } from '../manifest/manifest.ts';
import type { Program } from './perform.ts';

/**
 * Input and output of one command of a case: no terminal, a standard input that triggers can type into, one output
 * buffer.
 */
export interface StepIo {
  readonly io: CommandIo;
  readonly output: () => string;
  type(text: string): void;
  stop(signal: CaseSignal | 'exit'): void;
  /** Returns the exit code of the process, given the code of the command and the signal sent to it. */
  exitCode(code: number): number;
}

interface StepIoOptions {
  readonly host: Host;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: string | undefined;
  /** Number of triggers that will type something. Input ends after the last one. */
  readonly inputTriggers: number;
}

const reasons: Readonly<Record<CaseSignal | 'exit', readonly [number, string]>> = {
  SIGINT: [130, signalReasons.SIGINT],
  SIGTERM: [143, signalReasons.SIGTERM],
  SIGHUP: [129, signalReasons.SIGHUP],
  exit: [0, 'told to end'],
};

/** Returns the signal for a cancellation reason in the history; `undefined` for any other reason. */
export const signalOfReason = (reason: string): CaseSignal | undefined =>
  (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).find(signal => reasons[signal][1] === reason);

export const exitCodeOfSignal = (signal: CaseSignal): number => reasons[signal][0];

export function stepIo({ host, cwd, env, stdin, inputTriggers }: StepIoOptions): StepIo {
  const printed: string[] = [];
  const interrupt = new AbortController();
  const keyboard = new Keyboard(stdin, inputTriggers);
  let stoppedBy: CaseSignal | 'exit' | undefined;
  const write = (text: string) => void printed.push(text);
  return {
    io: {
      out: write,
      err: write,
      stdin: keyboard,
      isTTY: { stdin: false, stdout: false, stderr: false },
      // Wide enough that no line is truncated: lengths differ between machines.
      columns: 400,
      color: { out: false, err: false },
      env,
      cwd,
      now: () => host.clock.now(),
      interrupt: interrupt.signal,
      host,
    },
    output: () => printed.join(''),
    type: text => keyboard.type(text),
    stop: signal => {
      stoppedBy ??= signal;
      interrupt.abort(reasons[signal][1]);
    },
    exitCode: code => {
      if (stoppedBy === undefined || code === 0) return code;
      // A command that stops because the trigger `exit` asked it to has succeeded.
      return stoppedBy === 'exit' ? 0 : reasons[stoppedBy][0];
    },
  };
}

/** Standard input: the `stdin` of the command, then the text that triggers type. */
class Keyboard implements AsyncIterable<string> {
  readonly #typed: string[];
  #pending: number;
  #wake = () => {};

  constructor(text: string | undefined, pending: number) {
    this.#typed = text === undefined ? [] : [text];
    this.#pending = pending;
  }

  type(text: string): void {
    this.#typed.push(text.endsWith('\n') ? text : `${text}\n`);
    this.#pending -= 1;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    for (;;) {
      const next = this.#typed.shift();
      if (next !== undefined) yield next;
      else if (this.#pending <= 0) return;
      else
        await new Promise<void>(resolve => {
          this.#wake = resolve;
        });
    }
  }
}

/** Commands that open their own lanes, with every effect on the tape. */
const commandsWithLanes = new Set(['run', 'resume', 'replay', 'cancel', 'worker']);

export const opensLanes = (command: string): boolean => commandsWithLanes.has(command);

/** Keys that every command may read. */
const runs = ['store:', 'lease:', 'status:'];

const keysOf: Readonly<Record<string, Keys>> = {
  land: { reads: runs, writes: ['lock:land', 'gitworktrees', 'ref:', 'landed:'] },
  gc: { reads: runs, writes: ['lock:land', 'gitworktrees', 'ref:', 'landed:'] },
  status: { reads: [...runs, 'claim:', 'worker:', 'slot:', 'lock:land', 'ref:'] },
  tasks: { reads: [...runs, 'ref:'], writes: ['claim:'] },
  approve: { reads: runs, writes: ['inbox:'] },
  signal: { reads: runs, writes: ['inbox:'] },
};

/** Commands that wait for the landing lock inside one effect. They would deadlock with a suspended lane that holds it. */
const lands = new Set(['land', 'gc']);

interface PrintedOutput {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/**
 * Wraps a command in a single effect, so that it takes part in the recorded order. The command sees the time at which
 * it started, which is an effect too, because commands print the ages of runs. Commands with lanes need no wrapper.
 */
export function commandEffect(world: World, command: string, program: Program): Program {
  if (opensLanes(command)) return program;
  return async (args, io) => {
    const now = world.effect<void, number>({
      name: 'clock.now',
      span: 'short',
      answer: 'tape',
      perform: () => io.now(),
    });
    const startedAt = await now();
    let deferred: ((own: CommandIo) => Promise<number>) | undefined;
    const defer: CommandIo['defer'] = work => {
      deferred = work;
    };
    const perform = world.effect<readonly string[], PrintedOutput>({
      name: `command.${command}`,
      span: 'short',
      keys: () => keysOf[command] ?? { reads: runs },
      ...(lands.has(command) && { enabled: () => canLand(io.cwd) }),
      perform: () => printedBy(program, args, { ...io, now: () => startedAt, defer }),
    });
    const { code, out, err } = await perform(args);
    io.out(out);
    io.err(err);
    return deferred === undefined ? code : deferred(io);
  };
}

/** The folder of a command is the repository of its stage, which `git init` made. */
const canLand = (root: string): boolean => isLockFree({ commonDir: join(root, '.git') }, 'land');

async function printedBy(program: Program, args: readonly string[], io: CommandIo): Promise<PrintedOutput> {
  let out = '';
  let err = '';
  const code = await program(args, {
    ...io,
    out: text => {
      out += text;
    },
    err: text => {
      err += text;
    },
  });
  return { code, out, err };
}
