import type { CommandIo } from '../commands/io.ts';
import type { Keys } from '../world/effect.ts';
import type { World } from '../world/world.ts';
import type { Program } from './play.ts';

/** Commands that open lanes of their own, and whose every effect is on the tape. */
const openLanes = new Set(['run', 'resume', 'replay', 'cancel', 'worker']);

const keysOf: Readonly<Record<string, Keys>> = {
  land: { reads: ['store'], writes: ['lock:land', 'gitworktrees'] },
  gc: { reads: ['store'], writes: ['lock:land', 'gitworktrees'] },
  status: { reads: ['store', 'claims', 'workers'] },
  tasks: { reads: ['store'], writes: ['claims'] },
};

interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A command as one effect, so that it has its place in the order, unless its own effects have theirs. */
export function commandEffect(world: World, command: string, program: Program): Program {
  if (openLanes.has(command)) return program;
  return async (args, io) => {
    const carryOut = world.effect<readonly string[], Printed>({
      name: `command.${command}`,
      span: 'short',
      keys: () => keysOf[command] ?? { reads: ['store'] },
      perform: () => printedBy(program, args, io),
    });
    const { code, out, err } = await carryOut(args);
    io.out(out);
    io.err(err);
    return code;
  };
}

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
