import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endTrees, type Marker, markedWith, onAbandoned } from '../process/index.ts';
import type { Owner } from '../store/index.ts';
import { namesIn, parseRecord, readIfThere } from './files.ts';
import {
  abandonedTokens,
  holdsToken,
  isProvablyDead,
  type LockState,
  readLock,
  releaseToken,
  removeIfThere,
  takeToken,
  toOwner,
} from './lock-file.ts';
import type { Repository } from './repository.ts';

/** Admits the calls of this process one at a time, in order of arrival. */
class LocalQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Resolves with a function that admits the next call. On abort, leaves the queue and rejects. */
  async enter(key: string, signal?: AbortSignal): Promise<() => void> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    let leave = () => {};
    const own = new Promise<void>(resolve => {
      leave = resolve;
    });
    const tail = before.then(() => own);
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    try {
      await orAborted(before, signal);
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  }
}

async function orAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Names of the locks. To prevent a deadlock, `land` is never taken while `worktrees` is held. */
export const repositoryLocks = ['land', 'worktrees'] as const;

export interface LockRequest {
  readonly repository: Repository;
  readonly name: (typeof repositoryLocks)[number];
  readonly owner: Owner;
  readonly signal?: AbortSignal | undefined;
  /** Called once if another process holds the lock. */
  readonly onWait?: ((holder: Owner) => void) | undefined;
}

/** Proof that the lock is held. */
export interface HeldLock {
  /** Fencing token. Greater than the token of every earlier holder. */
  readonly token: number;
  /** Repository whose git commands carry the marker of the lock. If this process dies, the next holder awaits them. */
  readonly repository: Repository;
  isHeld(): boolean;
}

/** Whether no live process holds the lock. Calls of this process may still be queued for it. */
export const isLockFree = (repository: Pick<Repository, 'commonDir'>, name: LockRequest['name']): boolean =>
  readLock(lockFolder(repository, name)).kind !== 'held';

/** Returns the folder of a lock. */
export const lockFolder = ({ commonDir }: Pick<Repository, 'commonDir'>, name: LockRequest['name']): string =>
  join(commonDir, 'reprise', 'locks', name);

const pollMs = { first: 2, longest: 50 };
/** Time that a free lock is left to processes that have waited longer, which may be asleep between two polls. */
const courtesyMs = 150;
/** Time for git commands of a dead owner to end by themselves. */
const orphanPatienceMs = 10_000;

const localQueue = new LocalQueue();

/**
 * Runs the body while it holds the lock exclusively, across processes and calls. A lock is taken over only from an owner
 * that is provably dead, never because of its age. Rejects with the signal's reason if aborted while it waits. Rethrows
 * the error of the body.
 */
export async function withRepositoryLock<T>(
  request: LockRequest,
  body: (held: HeldLock) => Promise<T>,
): Promise<T> {
  const { release, ...held } = await acquire(request);
  try {
    return await body(held);
  } finally {
    release();
  }
}

/** Lock that outlives the call that acquired it. */
export interface TakenLock extends HeldLock {
  /** Releases the lock. Idempotent. */
  release(): void;
}

/** Acquires a lock for several calls. The lock becomes free when it is released or its owner is abandoned. */
export async function takeRepositoryLock(request: LockRequest): Promise<TakenLock> {
  const { release, leave, ...held } = await acquire(request);
  const forget = onAbandoned(request.owner.incarnation, leave);
  return {
    ...held,
    release: () => {
      forget();
      release();
    },
  };
}

async function acquire(request: LockRequest): Promise<TakenLock & { readonly leave: () => void }> {
  const { repository, name, owner, signal } = request;
  const folder = lockFolder(repository, name);
  const leave = await localQueue.enter(folder, signal);
  let release = leave;
  try {
    const { token, before } = await take(folder, request);
    release = () => {
      releaseToken(folder, { token, owner });
      leave();
    };
    if (before.kind === 'abandoned') {
      for (const old of abandonedTokens(folder, before.token)) {
        await settleOrphans(commandMarker(folder, old), signal);
      }
    }
    return {
      token,
      repository: { ...repository, git: repository.git.with({ env: commandMarker(folder, token) }) },
      isHeld: () => holdsToken(folder, { token, owner }),
      release,
      leave,
    };
  } catch (error) {
    release();
    throw error;
  }
}

interface TakenToken {
  readonly token: number;
  readonly before: LockState;
}

async function take(folder: string, { owner, signal, onWait }: LockRequest): Promise<TakenToken> {
  let ticket: string | undefined;
  let freeSince: number | undefined;
  let notify = onWait;
  try {
    for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pauseMs * 1.5, pollMs.longest)) {
      signal?.throwIfAborted();
      const before = readLock(folder);
      if (before.kind === 'held') {
        freeSince = undefined;
        notify?.(before.owner);
        notify = undefined;
      } else {
        freeSince ??= performance.now();
        const mayGo = performance.now() - freeSince > courtesyMs || !othersWaitLonger(folder, ticket);
        const token = before.token + 1;
        if (mayGo && takeToken(folder, { token, owner })) return { token, before };
      }
      ticket ??= drawTicket(folder, owner);
      await pause(pauseMs, signal);
    }
  } finally {
    if (ticket !== undefined) dropTicket(folder, ticket);
  }
}

const commandMarker = (folder: string, token: number): Marker => ({
  REPRISE_REPOSITORY_LOCK: `${folder}:${token}`,
});

/**
 * Waits for git commands of a killed owner, which keep running and would race with the new owner for the same worktree or
 * ref. Kills them only after a timeout, which indicates a hanging hook.
 */
async function settleOrphans(marker: Marker, signal: AbortSignal | undefined): Promise<void> {
  const began = performance.now();
  while (markedWith(marker).length > 0) {
    if (performance.now() - began > orphanPatienceMs) {
      await endTrees({ roots: [], marked: marker, graceMs: 2000 });
      return;
    }
    await pause(pollMs.longest, signal);
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/**
 * Every waiting process leaves a ticket next to the lock, named by the time, and yields to earlier tickets. Without tickets,
 * a process that takes the lock repeatedly would starve others, which only poll it.
 */
function drawTicket(folder: string, owner: Owner): string {
  mkdirSync(folder, { recursive: true });
  const moment = String(process.hrtime.bigint()).padStart(20, '0');
  const ticket = `wait.${moment}.${process.pid}`;
  writeFileSync(join(folder, ticket), `${JSON.stringify(owner)}\n`);
  return ticket;
}

const dropTicket = (folder: string, ticket: string): void => removeIfThere(join(folder, ticket));

/** Whether a live process has waited longer. Removes the tickets of dead processes. */
function othersWaitLonger(folder: string, own: string | undefined): boolean {
  const earlier = namesIn(folder).filter(
    name => name.startsWith('wait.') && (own === undefined || name < own),
  );
  return earlier.some(ticket => {
    const owner = toOwner(parseRecord(readIfThere(join(folder, ticket))));
    if (owner === undefined || !isProvablyDead(owner)) return true;
    dropTicket(folder, ticket);
    return false;
  });
}

/** Returns the owners that wait for a lock, longest wait first, except dead ones. Removes no tickets. */
export const waitingAt = (folder: string): readonly Owner[] =>
  namesIn(folder)
    .filter(name => name.startsWith('wait.'))
    .flatMap(ticket => toOwner(parseRecord(readIfThere(join(folder, ticket)))) ?? [])
    .filter(owner => !isProvablyDead(owner));
