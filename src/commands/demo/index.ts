import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RepriseError } from '../../core/errors.ts';
import type { ExitCode } from '../exit-codes.ts';
import { type CommandIo, writeLines } from '../io.ts';
import { openStore } from '../open-engine.ts';
import { makeDemoProject } from './project.ts';

export interface DemoOptions {
  /** Remove the project at the end, instead of leaving it to look around in. */
  readonly clean?: boolean | undefined;
}

const cli = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

/**
 * Shows on a real repository what Reprise is for: agents work at once in workspaces of their own, one step fails and is
 * tried again, the process is killed in the middle, and a resume goes on without doing finished work again, picks the
 * best result and lands it.
 */
export async function demoCommand(
  { io }: { readonly io: CommandIo },
  { clean = false }: DemoOptions,
): Promise<ExitCode> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-demo-')));
  const marks = join(root, '.git', 'demo-marks');
  const stage: Stage = { io, root, env: { ...io.env, DEMO_MARKS: marks } };
  const say = (text: string) => writeLines(io.err, text);
  try {
    prepare(root);
    say(
      `A repository was made in ${root}. Its test fails; three agents are to mend it.\n\n$ reprise run fix`,
    );
    await runAndKill(stage);
    say(
      '\nKilled with SIGKILL while one of the three was still at work. What had finished is in the history.',
    );
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

/** The first run is a process of its own that is killed once all agents but the slowest are done. */
async function runAndKill(stage: Stage): Promise<void> {
  const child = start(stage, ['run', 'fix']);
  const ended = endOf(stage, child);
  while (child.exitCode === null && !(await onlyTheSlowestIsLeft(stage.root))) await setTimeout(50);
  child.kill('SIGKILL');
  await ended;
  // A live view that was killed has left the cursor hidden.
  if (stage.io.isTTY.stderr) stage.io.err('\u001B[?25h\n');
  if (stage.io.interrupt.aborted) throw new RepriseError('CANCELLED', 'the demo was interrupted');
}

async function onlyTheSlowestIsLeft(root: string): Promise<boolean> {
  const store = await openStore(join(root, '.reprise', 'state'), { readonly: true }).catch(() => undefined);
  if (!store) return false;
  try {
    const [run] = await store.list();
    const history = run ? await store.read(run.runId) : [];
    const done = history.filter(({ type, worker }) => type === 'step.completed' && worker !== undefined);
    return done.length === 4;
  } finally {
    await store.close();
  }
}

const runToEnd = (stage: Stage, args: readonly string[]): Promise<number | null> =>
  endOf(stage, start(stage, args));

const start = ({ root, env }: Stage, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [cli, ...args], { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });

async function endOf({ io }: Stage, child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const onInterrupt = () => child.kill('SIGINT');
  io.interrupt.addEventListener('abort', onInterrupt);
  const [code] = (await once(child, 'exit')) as [number | null];
  io.interrupt.removeEventListener('abort', onInterrupt);
  return code;
}

/** What was done how often, from the marks that the steps themselves left. */
function epilogue(root: string, marks: string): string {
  const ran = marks.trim().split('\n');
  const why: Record<string, string> = {
    reproduce: 'its first attempt failed and was retried',
    'fix:2': 'it was killed in the middle',
  };
  const lines = ['reproduce', 'fix:0', 'fix:1', 'fix:2', 'docs:0', 'docs:1'].map(unit => {
    const times = ran.filter(each => each === unit).length;
    return `  ${unit.padEnd(10)} ${times === 1 ? 'once' : `${times} times: ${why[unit] ?? ''}`}`;
  });
  const log = execFileSync('git', ['log', '--format=  %h %s'], { cwd: root, encoding: 'utf8' }).trimEnd();
  return [`How often each really ran:`, ...lines, 'What is on main now:', log].join('\n');
}
