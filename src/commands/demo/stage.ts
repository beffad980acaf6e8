import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { RepriseError } from '../../core/errors.ts';
import { type CommandIo, writeLines } from '../../project/host.ts';

/** Where a demo plays. */
export interface Stage {
  readonly io: CommandIo;
  /** The program that runs now. */
  readonly cli: string;
  /** A repository that nobody else uses. */
  readonly root: string;
  /** Where the agents leave marks. */
  readonly scene: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Gives what to type to look around afterwards, or `undefined` if it did not come to its end. Throws CANCELLED. */
export type Play = (stage: Stage) => Promise<string | undefined>;

/** All of it is for people. */
export const say = ({ io }: Pick<Stage, 'io'>, text: string): void => writeLines(io.err, text);

export const interrupted = () =>
  new RepriseError('CANCELLED', 'the demo was interrupted, and its folder removed');

/** Runs a command of this program to its end; false if it did not do what it should. */
export async function perform(stage: Stage, args: readonly string[]): Promise<boolean> {
  say(stage, `\n$ reprise ${args.join(' ')}`);
  return (await endOf(stage, start(stage, args))) === 0;
}

/** By then a live view shows what has happened, so that what it leaves behind and what is said of it agree. */
const drawnMs = 300;

/** Runs a command of this program, and kills it as soon as it holds. */
export async function performAndKill(
  stage: Stage,
  args: readonly string[],
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const { io } = stage;
  say(stage, `\n$ reprise ${args.join(' ')}`);
  const child = start(stage, args);
  const ended = endOf(stage, child);
  while (isRunning(child) && !(await holds())) await setTimeout(20);
  await setTimeout(drawnMs);
  if (!io.interrupt.aborted) child.kill('SIGKILL');
  await ended;
  if (io.interrupt.aborted) throw interrupted();
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode === null && signalCode === null;

/** In a group of its own: what is typed at the terminal reaches this process, which hands it on once. */
const start = ({ cli, root, env }: Stage, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [cli, ...args], {
    cwd: root,
    env,
    // In one stream it stays in order.
    stdio: ['ignore', 2, 2],
    detached: true,
  });

async function endOf({ io }: Stage, child: ChildProcess): Promise<number | null> {
  const onInterrupt = () => child.kill('SIGINT');
  if (io.interrupt.aborted) onInterrupt();
  io.interrupt.addEventListener('abort', onInterrupt);
  const [code] = (await once(child, 'exit')) as [number | null];
  io.interrupt.removeEventListener('abort', onInterrupt);
  // A live view that was killed has left the cursor hidden.
  if (code === null && io.isTTY.stderr) io.err('\u001B[?25h\n');
  return code;
}

/** One line for each: how often it was begun, from the marks that it left itself, and why more than once. */
export function timesBegun(
  { scene }: Stage,
  why: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const names = Object.keys(why);
  const width = Math.max(...names.map(name => name.length));
  return names.map(name => {
    const times = begunIn(scene, name);
    return `  ${name.padEnd(width)}  ${times === 1 ? 'once' : `${times} times: ${why[name] ?? ''}`}`;
  });
}

/** How often it was begun. */
export function begunIn(scene: string, name: string): number {
  const marks = join(scene, name);
  return existsSync(marks) ? readFileSync(marks, 'utf8').length : 0;
}

/** What the programs share that play agents: marks of what was begun, and waiting that ends with the demo. */
export const stageText = `import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const stage = process.env.DEMO_STAGE;

/** How often it was begun. */
export const times = name => (existsSync(\`\${stage}/\${name}\`) ? readFileSync(\`\${stage}/\${name}\`, 'utf8').length : 0);

/** The how manieth time it is. */
export function begin(name) {
  appendFileSync(\`\${stage}/\${name}\`, '.');
  return times(name);
}

export async function until(holds) {
  for (let left = 1200; !holds(); left--) {
    if (left === 0 || !existsSync(stage)) process.exit(1);
    await setTimeout(50);
  }
}
`;

export type Files = Readonly<Record<string, string>>;

/** Makes a real repository with these files. Throws SPAWN_FAILED. */
export function makeRepository(folder: string, files: Files): void {
  const git = gitIn(folder);
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Demo');
  git('config', 'user.email', 'demo@example.com');
  commitFiles(folder, { files, message: 'Greet people' });
}

/** Writes the files and commits everything. Throws SPAWN_FAILED. */
export function commitFiles(
  folder: string,
  { files, message }: { readonly files: Files; readonly message: string },
): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const git = gitIn(folder);
  git('add', '.');
  git('-c', 'commit.gpgsign=false', 'commit', '--quiet', '--no-verify', '-m', message);
}

/** What is on main, the newest first: a line for each commit. */
export const logOf = (folder: string): readonly string[] =>
  gitIn(folder)('log', '--format=  %h %s', 'main').trimEnd().split('\n');

const gitIn =
  (folder: string) =>
  (...args: readonly string[]): string => {
    try {
      return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
    } catch (cause) {
      throw new RepriseError('SPAWN_FAILED', 'the demo needs git, which could not be run', {
        cause,
        hint: 'install git, then try again',
      });
    }
  };
