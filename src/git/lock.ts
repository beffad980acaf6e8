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

/** Lets the calls of this process through one at a time, in the order in which they came. */
class LocalQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Resolves with what lets the next one in. Rejects, having left the queue, when the signal is aborted. */
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

/** `worktrees` is taken inside of `land`, never the other way round. */
export const repositoryLocks = ['land', 'worktrees'] as const;

export interface LockRequest {
  readonly repository: Repository;
  readonly name: (typeof repositoryLocks)[number];
  readonly owner: Owner;
  readonly signal?: AbortSignal | undefined;
  /** Called once if another process has the lock. */
  readonly onWait?: ((holder: Owner) => void) | undefined;
}

/** Proof that the lock is held. */
export interface HeldLock {
  /** Greater than that of everybody who held the lock before. */
  readonly token: number;
  /** Its commands are marked as the holder's, so that they can be waited for if this process dies before them. */
  readonly repository: Repository;
  isHeld(): boolean;
}

/** Whether whoever asks for the lock would have it at once, as far as other processes let him. */
export const isLockFree = (repository: Pick<Repository, 'commonDir'>, name: LockRequest['name']): boolean =>
  readLock(lockFolder(repository, name)).kind !== 'held';

/** Where a lock of the repository is kept. */
export const lockFolder = ({ commonDir }: Pick<Repository, 'commonDir'>, name: LockRequest['name']): string =>
  join(commonDir, 'reprise', 'locks', name);

const pollMs = { first: 2, longest: 50 };
/** How long a free lock is left to those who have waited longer, in case one of them is asleep. */
const courtesyMs = 150;
/** How long commands of an owner that died may take to end by themselves. */
const orphanPatienceMs = 10_000;

const localQueue = new LocalQueue();

/**
 * Runs the body while no other process and no other call holds the lock of that name in the repository. A lock is taken
 * over only from an owner that is provably dead, never because of its age. Rejects with the signal's reason while it
 * waits; throws what the body throws.
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

/** A lock that outlives the call that took it. */
export interface TakenLock extends HeldLock {
  /** Gives it back; nothing happens the second time. */
  release(): void;
}

/** The same for whoever holds the lock across several calls. It is free again when its owner is left for dead. */
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
 * Killing a process leaves its git commands running. The next owner must not act beside them: they would meet in the
 * same worktree or ref. Only a hook that hangs is ended.
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
 * Who waits for a lock leaves a ticket beside it, named by the moment, and lets earlier ones go first. Without tickets
 * a process that takes the lock again and again would hardly ever leave it to another that looks now and then.
 */
function drawTicket(folder: string, owner: Owner): string {
  mkdirSync(folder, { recursive: true });
  const moment = String(process.hrtime.bigint()).padStart(20, '0');
  const ticket = `wait.${moment}.${process.pid}`;
  writeFileSync(join(folder, ticket), `${JSON.stringify(owner)}\n`);
  return ticket;
}

const dropTicket = (folder: string, ticket: string): void => removeIfThere(join(folder, ticket));

/** Whether somebody alive has waited for longer. Tickets of the dead are swept away. */
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

/** Who waits, the longest first, as far as they may be alive. Nothing is swept away. */
export const waitingAt = (folder: string): readonly Owner[] =>
  namesIn(folder)
    .filter(name => name.startsWith('wait.'))
    .flatMap(ticket => toOwner(parseRecord(readIfThere(join(folder, ticket)))) ?? [])
    .filter(owner => !isProvablyDead(owner));
