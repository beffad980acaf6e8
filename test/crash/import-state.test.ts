import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { processStart } from '../../src/process/table.ts';
import { openState } from '../../src/project/open-state.ts';
import { locateState } from '../../src/project/state.ts';
import { completed, newRun, owner, time } from '../../src/store/samples.conformance.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { temporaryFolder } from '../support/engine.ts';
import { programOf } from '../support/program.ts';
import { rounds } from '../support/rounds.ts';

const program = await programOf(join(import.meta.dirname, 'import/program.ts'));
const { env } = process;

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=Ana', '-c', 'user.email=ana@localhost', ...args], {
    cwd,
    encoding: 'utf8',
  });

/** Writes the state that a former version kept in a checkout. */
async function writeState(root: string, { run, claimedAt }: { run: string; claimedAt: number }) {
  const folder = join(root, '.reprise/state');
  mkdirSync(join(folder, 'logs', run), { recursive: true });
  writeFileSync(join(folder, 'logs', run, 's.1.log'), `output of ${run}\n`);
  mkdirSync(join(folder, 'journal', `2026-${run}`), { recursive: true });
  writeFileSync(join(folder, 'journal', `2026-${run}`, 'run'), run);
  const store = await openSqliteStore({ file: join(folder, 'reprise.db') });
  const lease = await store.createRun(newRun(run));
  await store.append({ runId: run, lease, expectedSeq: 1, at: time(1), events: [completed('s')] });
  await store.post(run, { kind: 'cancel', reason: 'enough' }, time(2));
  await store.claims.take({ task: 'a', seen: 0, version: 'v1', runId: null, by: run, at: time(claimedAt) });
  await store.release(run, lease);
  await store.close();
}

/** A repository with two worktrees and two projects, each with the state of a former version. */
async function repository() {
  const folder = temporaryFolder();
  const top = join(folder, 'main');
  mkdirSync(join(top, 'packages/a'), { recursive: true });
  writeFileSync(join(top, 'packages/a/reprise.yaml'), '{}\n');
  git(top, 'init', '--quiet', '--initial-branch=main');
  git(top, 'add', '.');
  git(top, 'commit', '--quiet', '--message', 'Begin');
  git(top, 'worktree', 'add', '--quiet', '-b', 'side', '../linked');
  const roots = { top, inner: join(top, 'packages/a'), linked: join(folder, 'linked') };
  await writeState(roots.top, { run: 'r1', claimedAt: 10 });
  await writeState(roots.inner, { run: 'r2', claimedAt: 20 });
  await writeState(roots.linked, { run: 'r3', claimedAt: 30 });
  return roots;
}

function importIn(root: string, killAt = 0) {
  const child = spawn(process.execPath, [program, root, String(killAt)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', text => (stderr += text));
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stderr }));
  return { child, ended };
}

async function opened(root: string, all = false) {
  const state = locateState({ root, env });
  const store = await openState({ state, root, env, mode: 'readonly', all });
  if (!store) throw new Error('there is no store');
  return store;
}

async function expectImported({ top, inner, linked }: Awaited<ReturnType<typeof repository>>) {
  const store = await opened(top, true);
  const ids = (await store.list()).map(({ runId, project }) => `${runId} ${project}`).sort();
  expect(ids).toEqual(['r1 .', 'r2 packages/a', 'r3 .']);
  for (const run of ['r1', 'r2', 'r3']) {
    expect(await store.read(run)).toHaveLength(2);
    expect(await store.inbox(run)).toHaveLength(1);
    expect(readFileSync(join(top, '.git/reprise/logs', run, 's.1.log'), 'utf8')).toContain(run);
    expect(existsSync(join(top, '.git/reprise/journal', `2026-${run}`, 'run'))).toBe(true);
  }
  // The newer of two claims to one task of one project.
  const claims = (await store.claims.list()).map(({ project, by }) => `${project} ${by}`).sort();
  expect(claims).toEqual(['. r3', 'packages/a r2']);
  await store.close();
  for (const root of [top, inner, linked]) {
    expect(existsSync(join(root, '.reprise/state'))).toBe(false);
    expect(existsSync(join(root, '.reprise/state.imported/reprise.db'))).toBe(true);
  }
  expect(existsSync(join(top, '.git/reprise/importing'))).toBe(false);
  expect(git(top, 'status', '--porcelain')).toBe('');
  expect(git(linked, 'status', '--porcelain')).toBe('');
}

describe('the import of old state', () => {
  it('brings everything along, once, and leaves git status clean', async () => {
    const roots = await repository();
    expect(await importIn(roots.linked).ended).toMatchObject({ code: 0 });
    await expectImported(roots);
    expect(await importIn(roots.top).ended).toMatchObject({ code: 0 });
    await expectImported(roots);
  });

  it('continues after kill -9 at every step', async () => {
    for (let step = 1; ; step++) {
      const roots = await repository();
      const { signal, stderr } = await importIn(roots.top, step).ended;
      expect(stderr).toBe('');
      await expectImported(roots);
      if (signal === null) return;
    }
  });

  it('continues after kill -9 at any moment', async () => {
    const { top } = await repository();
    const start = performance.now();
    await importIn(top).ended;
    const longest = performance.now() - start;
    for (let round = 0; round < rounds(20); round++) {
      const roots = await repository();
      const { child, ended } = importIn(roots.linked);
      await Promise.race([ended, delay((longest * round) / rounds(20))]);
      child.kill('SIGKILL');
      await ended;
      await expectImported(roots);
    }
  });

  it('is done once by several processes at the same time', async () => {
    const roots = await repository();
    const all = [roots.top, roots.linked, roots.inner, roots.top].map(root => importIn(root).ended);
    for (const end of await Promise.all(all)) expect(end).toMatchObject({ code: 0, stderr: '' });
    await expectImported(roots);
  });

  it('changes nothing while a process uses one of the stores, and names it', async () => {
    const roots = await repository();
    const file = join(roots.inner, '.reprise/state/reprise.db');
    const store = await openSqliteStore({ file });
    const self = { ...owner('me'), host: (await import('node:os')).hostname(), pid: process.pid };
    const alive = { ...self, processStart: processStart(process.pid) ?? '' };
    await store.createRun(newRun('r9', { owner: alive }));
    const state = locateState({ root: roots.top, env });
    await expect(openState({ state, root: roots.top, env, mode: 'writable' })).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining(`process ${process.pid} on`),
    });
    expect(existsSync(join(roots.top, '.git/reprise/reprise.db'))).toBe(false);
    expect(existsSync(join(roots.top, '.reprise/state/reprise.db'))).toBe(true);
    await store.release('r9', { epoch: 1, incarnation: 'me' });
    await store.close();
    const imported = await opened(roots.inner);
    expect((await imported.list()).map(({ runId }) => runId).sort()).toEqual(['r2', 'r9']);
    await imported.close();
  });

  it('refuses while the lease of a run on another host has not expired', async () => {
    const roots = await repository();
    const store = await openSqliteStore({ file: join(roots.top, '.reprise/state/reprise.db') });
    const elsewhere = { ...owner('far'), host: 'far-away' };
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    await store.createRun(newRun('r9', { owner: elsewhere, expiresAt }));
    await store.close();
    await expect(opened(roots.linked)).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('process 4711 on far-away (run r9)'),
    });
  });
});
