import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { type CommandIo, type ExitCode, exitCodes } from '../../project/index.ts';
import { playFanOut } from './fan-out.ts';
import { type DemoScript, type DemoStage, interrupted, say } from './stage.ts';
import { playWorkers } from './workers.ts';

export interface DemoOptions {
  /** Absolute path of the CLI that the demo starts. */
  readonly cli: string;
  /** Name of the demo. Defaults to `workers`. */
  readonly name?: string | undefined;
  /** Whether to remove the demo project at the end. */
  readonly clean?: boolean | undefined;
}

const plays = new Map<string, DemoScript>([
  ['workers', playWorkers],
  ['fan-out', playFanOut],
]);

/** Runs a demo in a new repository in a temporary folder. Throws USAGE, CANCELLED, SPAWN_FAILED. */
export async function demoCommand(
  { io }: { readonly io: CommandIo },
  { cli, name = 'workers', clean = false }: DemoOptions,
): Promise<ExitCode> {
  const play = plays.get(name);
  if (!play) throw unknownDemo(name);
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-demo-')));
  const scene = join(root, '.git', 'demo');
  const env = { ...io.env, REPRISE_STATE_DIR: undefined, DEMO_STAGE: scene };
  const stage: DemoStage = { io, cli, root, scene, env };
  try {
    mkdirSync(scene, { recursive: true });
    const look = await play(stage);
    if (look === undefined) return reportFailure(stage);
    if (!clean) say(stage, `\nLook around:\n  cd ${root}\n  node ${cli} ${look}`);
    return exitCodes.ok;
  } finally {
    // Removing the scene also ends agents that are still waiting there.
    const keepsProject = !clean && !io.interrupt.aborted;
    rmSync(keepsProject ? scene : root, { recursive: true, force: true, maxRetries: 5 });
  }
}

const unknownDemo = (name: string) =>
  new RepriseError('USAGE', `there is no demo ${JSON.stringify(name)}`, {
    hint: `available demos: ${[...plays.keys()].map(each => `reprise demo ${each}`).join(', ')}`,
  });

function reportFailure(stage: DemoStage): ExitCode {
  if (stage.io.interrupt.aborted) throw interrupted();
  say(stage, '\nThe demo failed: a command did not succeed.');
  return exitCodes.failed;
}
