import type { Program } from '../cases/perform/perform.ts';
import type { Keys } from '../effects/effect.ts';
import type { World } from '../effects/world.ts';
import { isLockFree } from '../git/lock.ts';
import { plainRepositoryAt } from '../git/repository.ts';
import type { CommandIo } from '../project/host.ts';

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
