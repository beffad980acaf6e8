import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAbandoned, isSameProcess, thisProcess } from '../process/index.ts';
import type { Owner } from '../store/index.ts';
import { isKernelLocked, tryKernelLock } from '../store/sqlite/connection.ts';
import { namesIn } from './files.ts';
import { type FolderLock, mutexOf, readLock, stalledMs, tryLock } from './lock.ts';

/** Folder of the lock that a process holds, below the folder of its state, for as long as it runs. */
const lifeFolder = (stateDir: string, { host, pid, processStart }: Omit<Owner, 'incarnation'>): string => {
  const digest = createHash('sha256').update(`${host}\n${processStart}`).digest('hex').slice(0, 12);
  return join(stateDir, 'locks', 'owners', `${pid}-${digest}`);
};

const lives = new Map<string, FolderLock>();
/** Folders that this process removes when it exits. */
const ownFolders = new Set<string>();

function removeAtExit(folder: string): void {
  if (ownFolders.size === 0)
    process.once('exit', () => {
      for (const own of ownFolders) rmSync(own, { recursive: true, force: true });
    });
  ownFolders.add(folder);
}

/**
 * Makes this process known to all that share the state: from now on, they know that it is alive, or that it has died.
 * Removes what dead processes left.
 */
export function proveAlive(stateDir: string): void {
  if (lives.get(stateDir)?.isHeld()) return;
  const self = thisProcess();
  const folder = lifeFolder(stateDir, self);
  let lock: FolderLock | undefined;
  // Another process may look at the lock in this moment, which makes an attempt fail.
  while (!lock) lock = tryLock(folder, { owner: { ...self, incarnation: 'process' } });
  lives.set(stateDir, lock);
  removeAtExit(folder);
  const owners = join(stateDir, 'locks', 'owners');
  for (const name of namesIn(owners)) {
    const other = join(owners, name);
    if (other === folder || isKernelLocked(mutexOf(other))) continue;
    // A process that has just made its folder waits for this lock, and then makes its folder again.
    const kernel = tryKernelLock(mutexOf(other));
    if (kernel) rmSync(other, { recursive: true, force: true });
    kernel?.release();
  }
}

/** Whether the process of the owner lives, wherever on this machine it runs and whatever the clocks say. */
export function isOwnerAlive(stateDir: string, owner: Owner): boolean {
  if (isAbandoned(owner.incarnation)) return false;
  const { host } = thisProcess();
  if (owner.host === host && isSameProcess(owner)) return true;
  return isKernelLocked(mutexOf(lifeFolder(stateDir, owner)));
}

/** Time for which a live owner has been stalled; `undefined` if it is not. */
export function stalledFor(stateDir: string, owner: Owner): number | undefined {
  const life = readLock(lifeFolder(stateDir, owner));
  return life.kind === 'held' && life.silentMs >= stalledMs ? life.silentMs : undefined;
}
