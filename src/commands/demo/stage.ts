import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { RepriseError } from '../../core/index.ts';
import { type CommandIo, writeLines } from '../../project/index.ts';

/** Surroundings of a demo. */
export interface DemoStage {
  readonly io: CommandIo;
  /** Path of the Reprise program that runs the demo. */
  readonly cli: string;
  /** Temporary repository of the demo. */
  readonly root: string;
  /** Folder where the scripted agents record each start. */
  readonly scene: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Runs a demo. Resolves with a Reprise command to try next, or `undefined` if a command failed. Throws CANCELLED. */
export type DemoScript = (stage: DemoStage) => Promise<string | undefined>;

/** Writes text to standard error. */
export const say = ({ io }: Pick<DemoStage, 'io'>, text: string): void => writeLines(io.err, text);

export const interrupted = () =>
  new RepriseError('CANCELLED', 'the demo was interrupted; its folder has been removed');

/** Runs a Reprise command and waits for it. Resolves with whether it exited with 0. */
export async function perform(stage: DemoStage, args: readonly string[]): Promise<boolean> {
  say(stage, `\n$ reprise ${args.join(' ')}`);
  return (await endOf(stage, start(stage, args))) === 0;
}

/** Time for the live view to draw the last change before the kill, so that it agrees with the text below it. */
const drawnMs = 300;

/** Runs a Reprise command and kills it as soon as `holds` resolves with true. */
export async function performAndKill(
  stage: DemoStage,
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

/** Starts a Reprise command in its own process group, so that it gets Ctrl-C once, from this process. */
const start = ({ cli, root, env }: DemoStage, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [cli, ...args], {
    cwd: root,
    env,
    // A single stream keeps the output in order.
    stdio: ['ignore', 2, 2],
    detached: true,
  });

async function endOf({ io }: DemoStage, child: ChildProcess): Promise<number | null> {
  const onInterrupt = () => child.kill('SIGINT');
  if (io.interrupt.aborted) onInterrupt();
  io.interrupt.addEventListener('abort', onInterrupt);
  const [code] = (await once(child, 'exit')) as [number | null];
  io.interrupt.removeEventListener('abort', onInterrupt);
  // A killed live view leaves the cursor hidden.
  if (code === null && io.isTTY.stderr) io.err('\u001B[?25h\n');
  return code;
}

/** One line per name: how often it was started, and why if more than once. */
export function timesBegun(
  { scene }: DemoStage,
  why: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const names = Object.keys(why);
  const width = Math.max(...names.map(name => name.length));
  return names.map(name => {
    const times = begunIn(scene, name);
    return `  ${name.padEnd(width)}  ${times === 1 ? 'once' : `${times} times: ${why[name] ?? ''}`}`;
  });
}

/** Number of times that an agent was started. */
export function begunIn(scene: string, name: string): number {
  const marks = join(scene, name);
  return existsSync(marks) ? readFileSync(marks, 'utf8').length : 0;
}

/** Module of the scripted agents. It records starts, and waits in a way that ends with the demo. */
export const stageText = `import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const stage = process.env.DEMO_STAGE;

/** Number of times that the agent was started. */
export const times = name => (existsSync(\`\${stage}/\${name}\`) ? readFileSync(\`\${stage}/\${name}\`, 'utf8').length : 0);

/** Records a start and returns the number of starts so far. */
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

export type DemoFiles = Readonly<Record<string, string>>;

/** Creates a repository with these files. Throws SPAWN_FAILED. */
export function makeRepository(folder: string, files: DemoFiles): void {
  const git = gitIn(folder);
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Demo');
  git('config', 'user.email', 'demo@example.com');
  commitFiles(folder, { files, message: 'Greet people' });
}

/** Writes the files and commits everything. Throws SPAWN_FAILED. */
export function commitFiles(
  folder: string,
  { files, message }: { readonly files: DemoFiles; readonly message: string },
): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const git = gitIn(folder);
  git('add', '.');
  git('-c', 'commit.gpgsign=false', 'commit', '--quiet', '--no-verify', '-m', message);
}

/** Commits on main, newest first, one line each. */
export const logOf = (folder: string): readonly string[] =>
  gitIn(folder)('log', '--format=  %h %s', 'main').trimEnd().split('\n');

const gitIn =
  (folder: string) =>
  (...args: readonly string[]): string => {
    try {
      return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
    } catch (cause) {
      throw new RepriseError('SPAWN_FAILED', 'the demo needs git, but git could not be run', {
        cause,
        hint: 'install git, then try again',
      });
    }
  };
