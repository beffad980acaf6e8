import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { abandonIncarnation, thisProcess } from '../process/table.ts';
import type { Owner } from '../store/port.ts';
import { isKernelLocked } from '../store/sqlite/connection.ts';
import { isLockFree, readLock, takeRepositoryLock, tryLock, withRepositoryLock } from './lock.ts';
import { runTogether, Worker } from './processes.conformance.ts';
import { Lab } from './test-support.ts';

const lockFolder = (lab: Lab): string => join(lab.root, '.git', 'reprise', 'locks', 'worktrees');

/** Starts a process that holds the lock and a git command that runs until `gate` is written. */
async function holderOf(lab: Lab): Promise<Worker> {
  execFileSync('mkfifo', [join(lab.folder, 'gate')]);
  const holder = new Worker({ task: 'hold', root: lab.root, name: 'holder', rounds: 1 });
  await holder.printed(1);
  holder.start();
  await holder.printed(2);
  while (!existsSync(join(lab.folder, 'pid'))) await new Promise(setImmediate);
  return holder;
}

async function take(lab: Lab, signal?: AbortSignal) {
  const holders: Owner[] = [];
  const request = { repository: await lab.open(), owner: lab.owner, name: 'worktrees', signal } as const;
  const token = await withRepositoryLock(
    { ...request, onWait: holder => holders.push(holder) },
    async held => {
      expect(held.isHeld()).toBe(true);
      return held.token;
    },
  );
  return { token, holders };
}

describe('a repository lock', () => {
  it('has a token that grows with every acquisition', async () => {
    const lab = new Lab();
    const tokens: number[] = [];
    for (let round = 0; round < 40; round++) tokens.push((await take(lab)).token);
    expect(tokens).toEqual(tokens.map((_, index) => index + 1));
  });

  it('admits the calls of one process one at a time, in order', async () => {
    const lab = new Lab();
    const repository = await lab.open();
    const order: string[] = [];
    const call = (name: string) =>
      withRepositoryLock({ repository, owner: lab.owner, name: 'worktrees' }, async () => {
        order.push(`${name} in`);
        await new Promise(setImmediate);
        order.push(`${name} out`);
      });
    await Promise.all(['a', 'b', 'c'].map(call));
    expect(order).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
  });

  it('is released if the body throws', async () => {
    const lab = new Lab();
    const request = { repository: await lab.open(), owner: lab.owner, name: 'worktrees' } as const;
    await expect(
      withRepositoryLock(request, async () => {
        throw new Error('broken');
      }),
    ).rejects.toThrow('broken');
    expect((await take(lab)).token).toBe(2);
  });

  it('is independent of locks with other names and in other repositories', async () => {
    const [lab, other] = [new Lab(), new Lab()];
    const repository = await lab.open();
    const tokens = await withRepositoryLock({ repository, owner: lab.owner, name: 'land' }, async land => [
      land.token,
      (await take(lab)).token,
      (await take(other)).token,
    ]);
    expect(tokens).toEqual([1, 1, 1]);
  });

  it('goes to the next call in the queue if an earlier one is aborted', async () => {
    const lab = new Lab();
    const stop = new AbortController();
    const repository = await lab.open();
    let second: Promise<unknown> | undefined;
    let third: Promise<unknown> | undefined;
    await withRepositoryLock({ repository, owner: lab.owner, name: 'worktrees' }, async () => {
      second = take(lab, stop.signal);
      second.catch(() => {});
      third = take(lab);
      await new Promise(setImmediate);
      stop.abort(new Error('enough'));
      await expect(second).rejects.toThrow('enough');
    });
    expect(await third).toMatchObject({ token: 2 });
  });

  it('is held by at most one of four processes at a time', async () => {
    const lab = new Lab();
    const rounds = 60;
    const workers = ['a', 'b', 'c', 'd'].map(
      name => new Worker({ task: 'count', root: lab.root, name, rounds }),
    );
    await runTogether(workers);
    expect(readFileSync(join(lab.folder, 'count'), 'utf8')).toBe(String(4 * rounds));
    const tokens = Array.from({ length: 4 * rounds }, (_, index) => index + 1);
    expect(readFileSync(join(lab.folder, 'log'), 'utf8')).toBe(
      tokens.map(token => `in ${token}\nout ${token}\n`).join(''),
    );
  });

  it('is usable after its holder was killed, once the orphaned git command has ended', async () => {
    const lab = new Lab();
    const holder = await holderOf(lab);
    expect(readLock(lockFolder(lab))).toMatchObject({
      kind: 'held',
      token: 1,
      owner: { incarnation: 'holder' },
    });
    await holder.kill();
    expect(readLock(lockFolder(lab))).toMatchObject({ kind: 'abandoned', token: 1 });
    let taken = false;
    const next = take(lab).then(result => {
      taken = true;
      return result;
    });
    while (readLock(lockFolder(lab)).token < 2) await new Promise(setImmediate);
    expect(taken).toBe(false);
    writeFileSync(join(lab.folder, 'gate'), 'go\n');
    expect((await next).token).toBe(2);
    expect(readLock(lockFolder(lab))).toEqual({ kind: 'free', token: 2 });
  });

  it('remembers the commands of a holder whose successor died before it had waited for them', async () => {
    const lab = new Lab();
    await (await holderOf(lab)).kill();
    const second = tryLock(lockFolder(lab), { owner: { ...lab.owner, incarnation: 'second' } });
    second?.drop();
    let taken = false;
    const next = take(lab).then(result => {
      taken = true;
      return result;
    });
    while (readLock(lockFolder(lab)).token < 3) await new Promise(setImmediate);
    expect(taken).toBe(false);
    writeFileSync(join(lab.folder, 'gate'), 'go\n');
    expect((await next).token).toBe(3);
  });

  it('stays with a stopped holder, and the wait can be aborted', async () => {
    const lab = new Lab();
    const holder = await holderOf(lab);
    holder.signal('SIGSTOP');
    const stop = new AbortController();
    const holders: Owner[] = [];
    const waiting = withRepositoryLock(
      {
        ...{ repository: await lab.open(), owner: lab.owner, name: 'worktrees', signal: stop.signal },
        onWait: owner => {
          holders.push(owner);
          stop.abort(new Error('enough'));
        },
      },
      async () => expect.unreachable(),
    );
    await expect(waiting).rejects.toThrow('enough');
    expect(holders).toMatchObject([{ incarnation: 'holder', host: thisProcess().host }]);
    holder.signal('SIGCONT');
  });

  it('is given up behind a holder that is stalled for too long, and not behind one that makes progress', async () => {
    const lab = new Lab();
    const holder = await holderOf(lab);
    const reports: (number | undefined)[] = [];
    const request = {
      repository: await lab.open(),
      owner: lab.owner,
      name: 'worktrees',
      giveUpMs: 60_000,
      onWait: (_: Owner, stalledMs?: number) => reports.push(stalledMs),
    } as const;
    holder.signal('SIGSTOP');
    const stop = new AbortController();
    const patient = takeRepositoryLock({
      ...request,
      signal: stop.signal,
      onWait: () => stop.abort(new Error('enough')),
    });
    await expect(patient).rejects.toThrow('enough');
    const row = join(lockFolder(lab), 'holder.json');
    writeFileSync(row, JSON.stringify({ ...JSON.parse(readFileSync(row, 'utf8')), beat: 1 }));
    await expect(takeRepositoryLock(request)).rejects.toMatchObject({
      code: 'LOCK_STALLED',
      message: expect.stringMatching(/process (\d+) on .* stalled .* ago; continue it: kill -CONT \1/),
    });
    expect(reports).toEqual([undefined, expect.any(Number)]);
    holder.signal('SIGCONT');
  });

  it('goes to another process if the one whose turn it is was stopped', async () => {
    const lab = new Lab();
    const request = { repository: await lab.open(), owner: lab.owner, name: 'worktrees' } as const;
    const lock = await takeRepositoryLock(request);
    const stopped = new Worker({ task: 'count', root: lab.root, name: 'stopped', rounds: 1 });
    await stopped.printed(1);
    stopped.start();
    while (!isKernelLocked(join(lockFolder(lab), 'next'))) await new Promise(setImmediate);
    stopped.signal('SIGSTOP');
    lock.release();
    expect((await take(lab)).token).toBe(2);
    stopped.signal('SIGCONT');
    await stopped.done();
  });

  it('is no longer held if its file was deleted', async () => {
    const lab = new Lab();
    const request = { repository: await lab.open(), owner: lab.owner, name: 'worktrees' } as const;
    const lock = await takeRepositoryLock(request);
    rmSync(lockFolder(lab), { recursive: true });
    expect(lock.isHeld()).toBe(false);
    const second = await takeRepositoryLock(request);
    expect([lock.isHeld(), second.isHeld()]).toEqual([false, true]);
    lock.release();
    expect(second.isHeld()).toBe(true);
    second.release();
  });

  it('is dropped by the kernel if this process opens its file without SQLite, and is then not held', async () => {
    const lab = new Lab();
    const lock = await takeRepositoryLock({
      repository: await lab.open(),
      owner: lab.owner,
      name: 'worktrees',
    });
    closeSync(openSync(join(lockFolder(lab), 'mutex'), 'r'));
    const others = ['a'].map(name => new Worker({ task: 'count', root: lab.root, name, rounds: 1 }));
    await runTogether(others);
    expect(lock.isHeld()).toBe(false);
    lock.release();
  });
});

describe('a lock that outlives the call that acquired it', () => {
  it('is held until it is released, then goes to the waiting call', async () => {
    const lab = new Lab();
    const request = { repository: await lab.open(), owner: lab.owner, name: 'land' } as const;
    const first = await takeRepositoryLock(request);
    expect(isLockFree(request.repository, 'land')).toBe(false);
    const order: string[] = [];
    const second = takeRepositoryLock(request).then(lock => {
      order.push('taken');
      return lock;
    });
    order.push('released');
    first.release();
    const { token, release, isHeld } = await second;
    expect(order).toEqual(['released', 'taken']);
    expect([first.token, token]).toEqual([1, 2]);
    first.release();
    expect([first.isHeld(), isHeld()]).toEqual([false, true]);
    release();
    expect(isLockFree(request.repository, 'land')).toBe(true);
  });

  it('goes to the next call if its owner is abandoned, and a late release has no effect', async () => {
    const lab = new Lab();
    const repository = await lab.open();
    const dead = { ...lab.owner, incarnation: `left-behind-${lab.folder}` };
    const lost = await takeRepositoryLock({ repository, owner: dead, name: 'land' });
    const next = takeRepositoryLock({ repository, owner: lab.owner, name: 'land' });
    abandonIncarnation(dead.incarnation);
    expect(isLockFree(repository, 'land')).toBe(true);
    const { token, isHeld, release } = await next;
    expect([token, lost.isHeld()]).toEqual([2, false]);
    lost.release();
    expect(isHeld()).toBe(true);
    release();
  });
});
