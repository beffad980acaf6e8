import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RepriseError } from '../../core/errors.ts';
import { type ExitCode, exitCodes } from '../../project/exit-codes.ts';
import type { CommandIo } from '../../project/host.ts';
import { playFanOut } from './fan-out.ts';
import { interrupted, type Play, type Stage, say } from './stage.ts';
import { playWorkers } from './workers.ts';

export interface DemoOptions {
  /** Which one; that of the workers by default. */
  readonly name?: string | undefined;
  /** Remove the project at the end, instead of leaving it to look around in. */
  readonly clean?: boolean | undefined;
}

const cli = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

const plays = new Map<string, Play>([
  ['workers', playWorkers],
  ['fan-out', playFanOut],
]);

/** Shows on a real repository, in a folder of its own, what Reprise is for. Throws USAGE, CANCELLED, SPAWN_FAILED. */
export async function demoCommand(
  { io }: { readonly io: CommandIo },
  { name = 'workers', clean = false }: DemoOptions,
): Promise<ExitCode> {
  const play = plays.get(name);
  if (!play) throw unknownDemo(name);
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-demo-')));
  const scene = join(root, '.git', 'demo');
  const env = { ...io.env, REPRISE_STATE_DIR: undefined, DEMO_STAGE: scene };
  const stage: Stage = { io, cli, root, scene, env };
  try {
    mkdirSync(scene, { recursive: true });
    const look = await play(stage);
    if (look === undefined) return notDone(stage);
    if (!clean) say(stage, `\nLook around:\n  cd ${root}\n  node ${cli} ${look}`);
    return exitCodes.ok;
  } finally {
    // Whoever waits there for something, without anybody to end it, gives up.
    const isWanted = !clean && !io.interrupt.aborted;
    rmSync(isWanted ? scene : root, { recursive: true, force: true, maxRetries: 5 });
  }
}

const unknownDemo = (name: string) =>
  new RepriseError('USAGE', `there is no demo ${JSON.stringify(name)}`, {
    hint: `there are: ${[...plays.keys()].map(each => `reprise demo ${each}`).join(', ')}`,
  });

function notDone(stage: Stage): ExitCode {
  if (stage.io.interrupt.aborted) throw interrupted();
  say(stage, '\nThe demo did not come to its end.');
  return exitCodes.failed;
}
