import type { Keys } from '../../effects/effect.ts';
import type { World } from '../../effects/world.ts';
import { isLockFree } from '../../git/lock.ts';
import { plainRepositoryAt } from '../../git/repository.ts';
import type { CommandIo, Host } from '../../project/host.ts';
import type { CaseSignal } from '../manifest/manifest.ts';
import type { Program } from './perform.ts';

/** The surroundings of one step: no terminal, a keyboard that a trigger can type on, and one buffer for all it prints. */
export interface StepIo {
  readonly io: CommandIo;
  readonly output: () => string;
  type(text: string): void;
  stop(signal: CaseSignal | 'exit'): void;
  /** What a process says that ended with this code after what it was told. */
  exitCode(code: number): number;
}

interface StepIoOptions {
  readonly host: Host;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: string | undefined;
  /** How often a trigger is going to type something. */
  readonly toBeTyped: number;
}

const reasons: Readonly<Record<CaseSignal | 'exit', readonly [number, string]>> = {
  SIGINT: [130, 'interrupted by Ctrl-C'],
  SIGTERM: [143, 'ended by SIGTERM'],
  SIGHUP: [129, 'the terminal was closed'],
  exit: [0, 'told to end'],
};

/** What a process is told to stop by, from what history says of it. */
export const signalOfReason = (reason: string): CaseSignal | undefined =>
  (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).find(signal => reasons[signal][1] === reason);

export const exitCodeOfSignal = (signal: CaseSignal): number => reasons[signal][0];

export function stepIo({ host, cwd, env, stdin, toBeTyped }: StepIoOptions): StepIo {
  const printed: string[] = [];
  const interrupt = new AbortController();
  const keyboard = new Keyboard(stdin, toBeTyped);
  let stoppedBy: CaseSignal | 'exit' | undefined;
  const write = (text: string) => void printed.push(text);
  return {
    io: {
      out: write,
      err: write,
      stdin: keyboard,
      isTTY: { stdin: false, stdout: false, stderr: false },
      // Wide, so that nothing is cut off whose length differs from one machine to another.
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
      // Whoever is asked to end, and ends, has done what it was asked for.
      return stoppedBy === 'exit' ? 0 : reasons[stoppedBy][0];
    },
  };
}

/** Standard input: what is there from the beginning, and then what triggers type. */
class Keyboard implements AsyncIterable<string> {
  readonly #typed: string[];
  #toCome: number;
  #wake = () => {};

  constructor(text: string | undefined, toCome: number) {
    this.#typed = text === undefined ? [] : [text];
    this.#toCome = toCome;
  }

  type(text: string): void {
    this.#typed.push(text.endsWith('\n') ? text : `${text}\n`);
    this.#toCome -= 1;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    for (;;) {
      const next = this.#typed.shift();
      if (next !== undefined) yield next;
      else if (this.#toCome <= 0) return;
      else
        await new Promise<void>(resolve => {
          this.#wake = resolve;
        });
    }
  }
}

/** Commands that open lanes of their own, and whose every effect is on the tape. */
const commandsWithLanes = new Set(['run', 'resume', 'replay', 'cancel', 'worker']);

export const opensLanes = (command: string): boolean => commandsWithLanes.has(command);

/** What every command may look at. */
const runs = ['store:', 'lease:', 'status:'];

const keysOf: Readonly<Record<string, Keys>> = {
  land: { reads: runs, writes: ['lock:land', 'gitworktrees', 'ref:', 'landed:'] },
  gc: { reads: runs, writes: ['lock:land', 'gitworktrees', 'ref:', 'landed:'] },
  status: { reads: [...runs, 'claim:', 'worker:', 'slot:', 'lock:land', 'ref:'] },
  tasks: { reads: [...runs, 'ref:'], writes: ['claim:'] },
  approve: { reads: runs, writes: ['inbox:'] },
  signal: { reads: runs, writes: ['inbox:'] },
};

/** Commands that wait for the lock themselves, and would wait for ever for a lane that cannot go on meanwhile. */
const lands = new Set(['land', 'gc']);

interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A command as one effect, so that it has its place in the order, unless its own effects have theirs. */
export function commandEffect(world: World, command: string, program: Program): Program {
  if (opensLanes(command)) return program;
  return async (args, io) => {
    const carryOut = world.effect<readonly string[], Printed>({
      name: `command.${command}`,
      span: 'short',
      keys: () => keysOf[command] ?? { reads: runs },
      ...(lands.has(command) && { enabled: () => canLand(io.cwd) }),
      perform: () => printedBy(program, args, io),
    });
    const { code, out, err } = await carryOut(args);
    io.out(out);
    io.err(err);
    return code;
  };
}

const canLand = (root: string): boolean => {
  const repository = plainRepositoryAt(root);
  return repository === undefined || isLockFree(repository, 'land');
};

async function printedBy(program: Program, args: readonly string[], io: CommandIo): Promise<Printed> {
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
