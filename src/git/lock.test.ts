import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { abandonIncarnation } from '../process/table.ts';
import type { Owner } from '../store/port.ts';
import { isLockFree, takeRepositoryLock, waitingAt, withRepositoryLock } from './lock.ts';
import { readLock } from './lock-file.ts';
import { runTogether, Worker } from './processes.conformance.ts';
import { Lab } from './test-support.ts';

const lockFolder = (lab: Lab): string => join(lab.root, '.git', 'reprise', 'locks', 'worktrees');

/** Writes the lock file of an owner. */
function leaveLock(lab: Lab, token: number, owner: Owner | string): void {
  mkdirSync(lockFolder(lab), { recursive: true });
  writeFileSync(
    join(lockFolder(lab), String(token)),
    typeof owner === 'string' ? owner : JSON.stringify(owner),
  );
}

const ticketsOf = (lab: Lab): string[] =>
  readdirSync(lockFolder(lab)).filter(name => name.startsWith('wait.'));

/** Writes the ticket of an owner that has waited longest. */
function leaveTicket(lab: Lab, owner: Owner): void {
  mkdirSync(lockFolder(lab), { recursive: true });
  writeFileSync(join(lockFolder(lab), `wait.${'1'.padStart(20, '0')}.1`), JSON.stringify(owner));
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
    expect(readdirSync(lockFolder(lab)).length).toBeLessThan(20);
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

  it('is taken over immediately from a process that has ended', async () => {
    const lab = new Lab();
    const pid = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
    leaveLock(lab, 7, { ...lab.owner, pid, incarnation: 'dead' });
    expect(await take(lab)).toEqual({ token: 8, holders: [] });
  });

  it('is taken over from an owner whose pid was reused', async () => {
    const lab = new Lab();
    leaveLock(lab, 7, { ...lab.owner, processStart: 'long ago', incarnation: 'dead' });
    expect(await take(lab)).toEqual({ token: 8, holders: [] });
  });

  it('is taken over if a power failure left its file empty', async () => {
    const lab = new Lab();
    leaveLock(lab, 7, '');
    expect((await take(lab)).token).toBe(8);
  });

  it.each([
    ['is alive', {}],
    ['is on another machine', { host: 'elsewhere', pid: 2 ** 22 + 1 }],
  ])('is never taken from an owner that %s, and the wait can be aborted', async (_, change) => {
    const lab = new Lab();
    const owner = { ...lab.owner, incarnation: 'other', ...change };
    leaveLock(lab, 7, owner);
    const stop = new AbortController();
    const holders: Owner[] = [];
    const request = { repository: await lab.open(), owner: lab.owner, name: 'worktrees' } as const;
    const waiting = withRepositoryLock(
      {
        ...request,
        signal: stop.signal,
        onWait: holder => {
          holders.push(holder);
          stop.abort(new Error('enough'));
        },
      },
      async () => expect.unreachable(),
    );
    await expect(waiting).rejects.toThrow('enough');
    expect(holders).toEqual([owner]);
    expect(readdirSync(lockFolder(lab))).toEqual(['7']);
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
    expect(readdirSync(lockFolder(lab)).filter(name => !/^\d+$/.test(name))).toEqual([]);
  });

  it('is left to processes that have waited longer, but only for a limited time', async () => {
    const lab = new Lab();
    await take(lab);
    leaveTicket(lab, lab.owner);
    let taken = false;
    const taking = take(lab).then(result => {
      taken = true;
      return result;
    });
    while (!taken && ticketsOf(lab).length < 2) await new Promise(setImmediate);
    expect(ticketsOf(lab)).toHaveLength(2);
    expect(readLock(lockFolder(lab))).toEqual({ kind: 'free', token: 1 });
    expect((await taking).token).toBe(2);
    expect(ticketsOf(lab)).toHaveLength(1);
  });

  it('lists live waiting processes without removing tickets of dead ones', () => {
    const lab = new Lab();
    expect(waitingAt(lockFolder(lab))).toEqual([]);
    leaveTicket(lab, lab.owner);
    expect(waitingAt(lockFolder(lab))).toEqual([lab.owner]);
    leaveTicket(lab, { ...lab.owner, processStart: 'long ago' });
    expect(waitingAt(lockFolder(lab))).toEqual([]);
    expect(ticketsOf(lab)).toHaveLength(1);
  });

  it('is not left to processes that have ended', async () => {
    const lab = new Lab();
    leaveTicket(lab, { ...lab.owner, processStart: 'long ago' });
    expect((await take(lab)).token).toBe(1);
    expect(ticketsOf(lab)).toEqual([]);
  });

  it('is usable after its holder was killed, once the orphaned git command has ended', async () => {
    const lab = new Lab();
    execFileSync('mkfifo', [join(lab.folder, 'gate')]);
    const holder = new Worker({ task: 'hold', root: lab.root, name: 'holder', rounds: 1 });
    await holder.printed(1);
    holder.start();
    await holder.printed(2);
    while (!existsSync(join(lab.folder, 'pid'))) await new Promise(setImmediate);
    await holder.kill();
    let taken = false;
    const next = take(lab).then(result => {
      taken = true;
      return result;
    });
    while (!existsSync(join(lockFolder(lab), '2'))) await new Promise(setImmediate);
    expect(taken).toBe(false);
    writeFileSync(join(lab.folder, 'gate'), 'go\n');
    expect((await next).token).toBe(2);
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
