import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, it } from 'vitest';
import type { HistoryEvent } from '../../src/core/events.ts';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { markedWith } from '../../src/process/tree.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { programOf } from '../support/program.ts';
import { answersFor } from './answers.ts';
import { Promises } from './promises.ts';

const program = await programOf(join(import.meta.dirname, 'program.ts'));
const names = [
  'diamond',
  'retry',
  'sleep',
  'approval',
  'signal',
  'child',
  'fan-out',
  'fail-fast',
  'finish-running',
  'continue',
  'shell',
  'workers',
  'agents',
] as const;
const root = mkdtempSync(join(tmpdir(), 'reprise-crash-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function makeRepository(folder: string): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, stdio: 'pipe' });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Test');
  git('config', 'user.email', 'test@example.com');
  git('commit', '--quiet', '--allow-empty', '--message', 'Begin');
}

/** One run: its state on disk, and the marks that its steps leave outside the store. */
class Case {
  readonly folder: string;
  readonly id: string;

  constructor(
    readonly name: string,
    variant: string,
    base?: Case,
  ) {
    this.id = `${name}-${variant}`;
    this.folder = join(root, this.id);
    if (base) cpSync(base.folder, this.folder, { recursive: true });
    else mkdirSync(this.folder);
    if (name === 'agents') makeRepository(this.folder);
  }

  /** Starts or resumes the run in a process of its own, which kills itself after `killAfter` commits. */
  live(killAfter = 0): Promise<'killed' | 'ended' | 'suspended'> {
    const env = { ...process.env, CRASH_MARKS: join(this.folder, 'marks'), CRASH_CASE: this.id };
    const child = spawn(process.execPath, [program, this.folder, this.name, String(killAfter)], {
      env,
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    const errors: Buffer[] = [];
    child.stderr.on('data', (data: Buffer) => errors.push(data));
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => {
        if (signal === 'SIGKILL') resolve('killed');
        else if (code === 0) resolve('ended');
        else if (code === 3) resolve('suspended');
        else reject(new Error(`${this.id} ended with ${code ?? signal}:\n${Buffer.concat(errors)}`));
      });
    });
  }

  /** Posts every approval and signal that the run waits for, or is going to wait for. */
  async answer(): Promise<void> {
    await this.#withStore((store, runId) => answersFor(this.name, store, runId));
  }

  /** Resumes until the run has ended. A failed run counts as ended: resuming it would retry it. */
  async seeThrough(): Promise<void> {
    while (!(await this.hasEnded())) {
      await this.answer();
      await this.live();
    }
  }

  async hasEnded(): Promise<boolean> {
    return /^run\.(completed|failed|cancelled)$/.test((await this.history()).at(-1)?.type ?? '');
  }

  async history(): Promise<readonly HistoryEvent[]> {
    let events: readonly HistoryEvent[] = [];
    await this.#withStore(async (store, runId) => {
      events = await store.read(runId);
    });
    return events;
  }

  async #withStore(
    use: (store: Awaited<ReturnType<typeof openSqliteStore>>, runId: string) => Promise<void>,
  ): Promise<void> {
    const store = await openSqliteStore({ file: join(this.folder, 'reprise.db') });
    try {
      const [run] = await store.list();
      if (run) await use(store, run.runId);
    } finally {
      await store.close();
    }
  }
}

function expectNoOrphans({ id }: Case, context: string): void {
  const orphans = markedWith({ CRASH_CASE: id });
  if (orphans.length > 0) throw new Error(`${context}: ${orphans.length} processes were left running`);
}

interface KillPoint {
  readonly name: string;
  readonly base: Case | undefined;
  readonly phase: string;
  readonly digest: string;
  readonly commit: number;
}

/** Kills a run after one commit and resumes it. `again` kills the resume as well, after that number of its commits. */
async function killAt({ name, base, phase, digest, commit }: KillPoint, again: number): Promise<boolean> {
  const context = `${name}, ${phase}, killed after commit ${commit}${again ? ` and ${again} of the resume` : ''}`;
  const run = new Case(name, `${phase}-${commit}-${again}`, base);
  if ((await run.live(commit)) !== 'killed') return false;
  const promises = new Promises(run, digest);
  await promises.remember();
  // A resumed function that was waiting starts again from the top, so only the first process can be checked for this.
  if (!base) promises.expectOnce(context);
  if (again > 0 && !(await run.hasEnded())) {
    await run.answer();
    if ((await run.live(again)) === 'killed') await promises.remember();
  }
  await run.seeThrough();
  await promises.check(context);
  expectNoOrphans(run, context);
  rmSync(run.folder, { recursive: true, force: true });
  return true;
}

async function killAtEveryCommit(point: Omit<KillPoint, 'commit'>): Promise<number> {
  for (let commit = 1; ; commit++) {
    const [once] = await Promise.all([
      killAt({ ...point, commit }, 0),
      killAt({ ...point, commit }, 1 + (commit % 3)),
    ]);
    if (!once) return commit - 1;
  }
}

describe('a run that is killed after any commit', () => {
  it.concurrent.each(names)('%s reaches the same outcome on resume and does nothing twice', async name => {
    const clean = new Case(name, 'clean');
    const suspends = (await clean.live()) === 'suspended';
    const suspended = suspends ? new Case(name, 'suspended', clean) : undefined;
    if (suspends) await clean.seeThrough();
    await suspended?.answer();
    const digest = digestsOf(await clean.history()).outcome;
    const points = await killAtEveryCommit({ name, base: undefined, phase: 'first', digest });
    const later = suspended ? await killAtEveryCommit({ name, base: suspended, phase: 'second', digest }) : 1;
    if (points < 4 || later < 1)
      throw new Error(`only ${points} and ${later} commits were found to kill after`);
  });
});
