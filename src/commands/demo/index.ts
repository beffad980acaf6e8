import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RepriseError } from '../../core/errors.ts';
import type { ExitCode } from '../exit-codes.ts';
import { type CommandIo, writeLines } from '../io.ts';
import { makeDemoProject } from './project.ts';

export interface DemoOptions {
  /** Remove the project at the end, instead of leaving it to look around in. */
  readonly clean?: boolean | undefined;
}

const cli = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

/**
 * Shows on a real repository what Reprise is for: steps run at once, one fails and is tried again, the process is
 * killed in the middle, and a resume goes on without doing finished work again.
 */
export async function demoCommand(
  { io }: { readonly io: CommandIo },
  { clean = false }: DemoOptions,
): Promise<ExitCode> {
  const root = mkdtempSync(join(tmpdir(), 'reprise-demo-'));
  const marks = join(root, '.git', 'demo-marks');
  const stage: Stage = { io, root, marks, env: { ...io.env, DEMO_MARKS: marks } };
  const say = (text: string) => writeLines(io.err, text);
  try {
    prepare(root);
    say(`A repository was made in ${root}, with a workflow of five steps.\n\n$ reprise run release`);
    await runAndKill(stage);
    say('\nKilled with SIGKILL while `package` was at work. Every step that had finished is in the history.');
    say('\n$ reprise resume');
    const code = await runToEnd(stage, ['resume']);
    if (code !== 0) return 1;
    say(`\n${epilogue(root, readFileSync(marks, 'utf8'))}`);
    if (!clean) say(`\nLook around:  cd ${root} && node ${cli} history`);
    return 0;
  } finally {
    if (clean) rmSync(root, { recursive: true, force: true });
  }
}

interface Stage {
  readonly io: CommandIo;
  readonly root: string;
  /** A file in which each step leaves a line each time it runs. */
  readonly marks: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

function prepare(root: string): void {
  try {
    makeDemoProject(root);
  } catch (cause) {
    throw new RepriseError('SPAWN_FAILED', 'the demo needs git, which could not be run', {
      cause,
      hint: 'install git, then try again',
    });
  }
}

/** The first run is a process of its own that is killed once `package` is at work. */
async function runAndKill(stage: Stage): Promise<void> {
  const child = start(stage, ['run', 'release'], 'pipe');
  for await (const line of linesOf(child)) {
    writeLines(stage.io.err, line);
    if (/\bpackage\s+started\b/.test(line)) await killInTheMiddle(child, stage.marks);
  }
  await endOf(stage, child);
  if (stage.io.interrupt.aborted) throw new RepriseError('CANCELLED', 'the demo was interrupted');
}

/** Its script has left its mark and sleeps: now it is hit in the middle of its work. */
async function killInTheMiddle(child: ChildProcess, marks: string): Promise<void> {
  while (child.exitCode === null && !readFileSync(marks, 'utf8').includes('package')) await setTimeout(20);
  child.kill('SIGKILL');
}

const runToEnd = (stage: Stage, args: readonly string[]): Promise<number | null> =>
  endOf(stage, start(stage, args, 'inherit'));

const start = ({ root, env }: Stage, args: readonly string[], stderr: 'pipe' | 'inherit'): ChildProcess =>
  spawn(process.execPath, [cli, ...args], { cwd: root, env, stdio: ['ignore', 'inherit', stderr] });

async function endOf({ io }: Stage, child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const onInterrupt = () => child.kill('SIGINT');
  io.interrupt.addEventListener('abort', onInterrupt);
  const [code] = (await once(child, 'exit')) as [number | null];
  io.interrupt.removeEventListener('abort', onInterrupt);
  return code;
}

async function* linesOf(child: ChildProcess): AsyncGenerator<string> {
  if (child.stderr) yield* createInterface({ input: child.stderr });
}

/** What was done how often, from the marks that the steps themselves left. */
function epilogue(root: string, marks: string): string {
  const ran = marks.trim().split('\n');
  const why: Record<string, string> = {
    test: 'its first attempt failed and was retried',
    package: 'it was killed in the middle',
  };
  const lines = ['lint', 'test', 'notes', 'package', 'tag'].map(step => {
    const times = ran.filter(each => each === step).length;
    return `  ${step.padEnd(8)} ${times === 1 ? 'once' : `${times} times: ${why[step] ?? ''}`}`;
  });
  const tag = execFileSync('git', ['tag', '--list', '--format=%(refname:short) (%(contents:subject))'], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
  return [`How often each step really ran:`, ...lines, `The repository now has the tag ${tag}.`].join('\n');
}
