import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RepriseError } from '../../core/errors.ts';
import { type ExitCode, exitCodes } from '../exit-codes.ts';
import { type CommandIo, writeLines } from '../io.ts';
import { demoLog, demoTasks, equipDemoProject, makeDemoProject } from './project.ts';

export interface DemoOptions {
  /** Remove the project at the end, instead of leaving it to look around in. */
  readonly clean?: boolean | undefined;
}

const cli = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

/**
 * Shows on a real repository what Reprise is for: two workers do three tasks at once, are killed in the middle, go on
 * where they were, and one solves the conflict that it has with the other before its work lands.
 */
export async function demoCommand(
  { io }: { readonly io: CommandIo },
  { clean = false }: DemoOptions,
): Promise<ExitCode> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-demo-')));
  const scene = join(root, '.git', 'demo');
  const stage: Stage = {
    io,
    root,
    scene,
    env: { ...io.env, REPRISE_STATE_DIR: undefined, DEMO_STAGE: scene },
  };
  try {
    return await play(stage, clean);
  } finally {
    // Whoever waits there for something, without anybody to end it, gives up.
    rmSync(clean ? root : scene, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface Stage {
  readonly io: CommandIo;
  readonly root: string;
  /** Where the agents leave marks. */
  readonly scene: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

async function play(stage: Stage, clean: boolean): Promise<ExitCode> {
  const { io, root, scene } = stage;
  const say = (text: string) => writeLines(io.err, text);
  const worker = ['worker', '--workers', '2', '--until-idle'];
  withGit(() => makeDemoProject(root));
  mkdirSync(scene);
  say(`Two workers, three tasks, one kill -9 and one conflict, in a new repository:\n${root}`);
  say('\n$ reprise init');
  if ((await endOf(stage, start(stage, ['init']))) !== 0) return notDone(stage);
  withGit(() => equipDemoProject(root));
  say(
    [
      '\nThree tasks are on main. A script plays the agent, so no account is needed.',
      ...demoTasks.map(
        ({ id, priority, title }) => `  issues/${`${id}.md`.padEnd(15)} ${priority}  ${title}`,
      ),
      'The first two change the same line.',
    ].join('\n'),
  );
  say(`\n$ reprise ${worker.join(' ')}`);
  await startAndKill(stage, worker);
  say('\nkill -9: one task has landed, and the workers were busy with the others.');
  say(`\n$ reprise ${worker.join(' ')}`);
  if ((await endOf(stage, start(stage, worker))) !== 0) return notDone(stage);
  say(`\n${epilogue(stage)}`);
  if (!clean) say(`\nLook around:\n  cd ${root}\n  node ${cli} tasks`);
  return exitCodes.ok;
}

function notDone({ io }: Stage): ExitCode {
  if (io.interrupt.aborted) throw interrupted();
  writeLines(io.err, '\nThe demo did not come to its end.');
  return exitCodes.failed;
}

const interrupted = () => new RepriseError('CANCELLED', 'the demo was interrupted');

function withGit(work: () => void): void {
  try {
    work();
  } catch (cause) {
    throw new RepriseError('SPAWN_FAILED', 'the demo needs git, which could not be run', {
      cause,
      hint: 'install git, then try again',
    });
  }
}

/** Killed when one task has landed, and both workers are in the middle of another. */
async function startAndKill(stage: Stage, args: readonly string[]): Promise<void> {
  const { io } = stage;
  const child = start(stage, args);
  const ended = endOf(stage, child);
  // Whoever has landed the first takes the last, so by then all of it holds.
  while (isRunning(child) && sessionsOf(stage, 'write-guide') === 0) await setTimeout(20);
  if (!io.interrupt.aborted) child.kill('SIGKILL');
  await ended;
  // A live view that was killed has left the cursor hidden.
  if (io.isTTY.stderr) io.err('\u001B[?25h\n');
  if (io.interrupt.aborted) throw interrupted();
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode === null && signalCode === null;

/** In a group of its own: what is typed at the terminal reaches this process, which hands it on once. */
const start = ({ root, env }: Stage, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [cli, ...args], {
    cwd: root,
    env,
    // All of it is for people, and in one stream it stays in order.
    stdio: ['ignore', 2, 2],
    detached: true,
  });

async function endOf({ io }: Stage, child: ChildProcess): Promise<number | null> {
  const onInterrupt = () => child.kill('SIGINT');
  if (io.interrupt.aborted) onInterrupt();
  io.interrupt.addEventListener('abort', onInterrupt);
  const [code] = (await once(child, 'exit')) as [number | null];
  io.interrupt.removeEventListener('abort', onInterrupt);
  return code;
}

/** How often the agent was told of a task, from the marks that it left itself. */
function sessionsOf({ scene }: Stage, task: string): number {
  const marks = join(scene, task);
  return existsSync(marks) ? readFileSync(marks, 'utf8').length : 0;
}

function epilogue(stage: Stage): string {
  const why: Readonly<Record<string, string>> = {
    exclaim: 'killed in the middle, done, then the conflict',
    'write-guide': 'killed in the middle, then done',
  };
  const counts = demoTasks.map(({ id }) => {
    const times = sessionsOf(stage, id);
    return `  ${id.padEnd(12)} ${times === 1 ? 'once' : `${times} times: ${why[id] ?? ''}`}`;
  });
  return [
    'How often the agent was at work on each:',
    ...counts,
    'What is on main now, and the line that two of them changed:',
    ...demoLog(stage.root).map(line => `  ${line}`),
    `  ${readFileSync(join(stage.root, 'greet.mjs'), 'utf8').trimEnd()}`,
  ].join('\n');
}
