import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { formatDuration, RepriseError } from '../core/index.ts';
import { endTrees, isVisible, type Marker, markedWith, onAbandoned } from '../process/index.ts';
import type { Owner } from '../store/index.ts';
import { isKernelLocked, type KernelLock, tryKernelLock } from '../store/sqlite/connection.ts';
import { parseRecord, readIfThere, replaceFile } from './files.ts';
import type { Repository } from './repository.ts';

/**
 * A lock is a folder with three files. `mutex` is the lock itself, held in the kernel. `holder.json` says who holds it; only
 * the holder writes it, so a reader sees the holder, or a dead one that did not clear it. `next` is a second lock, held by
 * the first of the waiting processes, which the others leave the lock to.
 */
export type LockState =
  | { readonly kind: 'free'; readonly token: number }
  | { readonly kind: 'held'; readonly token: number; readonly owner: Owner; readonly silentMs: number }
  /** Its owner died without releasing it. */
  | { readonly kind: 'abandoned'; readonly token: number; readonly owner: Owner };

/** A former holder that did not release the lock, so commands of it may still run. */
interface Unsettled {
  readonly owner: Owner;
  /** Environment variables of its commands. */
  readonly marker: Marker;
}

interface HolderRow {
  /** Fencing token of the current or last holder. */
  readonly token: number;
  readonly holder?: Unsettled | undefined;
  /** Former holders whose commands have not been waited for yet, except `holder`. */
  readonly unsettled: readonly Unsettled[];
  /** Number that the holder increases while it runs: milliseconds on the monotonic clock of the machine. */
  readonly beat: number;
}

/** File that is locked. Only SQLite may open it. */
export const mutexOf = (folder: string): string => join(folder, 'mutex');
const nextOf = (folder: string): string => join(folder, 'next');
const rowOf = (folder: string): string => join(folder, 'holder.json');

/** Reads the state of a lock. Changes nothing. */
export function readLock(folder: string): LockState {
  const { token, holder, unsettled, beat } = readRow(folder);
  const owner = (holder ?? unsettled.at(-1))?.owner;
  if (owner === undefined) return { kind: 'free', token };
  if (!isKernelLocked(mutexOf(folder))) return { kind: 'abandoned', token, owner };
  return { kind: 'held', token, owner, silentMs: silentMs(folder, beat) };
}

/** Text that is not complete comes from a machine that lost power, on which no commands run any more. */
function readRow(folder: string): HolderRow {
  const { token, holder, unsettled, beat } = parseRecord(readIfThere(rowOf(folder))) ?? {};
  return {
    token: typeof token === 'number' ? token : 0,
    holder: holder as HolderRow['holder'],
    unsettled: Array.isArray(unsettled) ? unsettled : [],
    beat: typeof beat === 'number' ? beat : 0,
  };
}

const writeRow = (folder: string, row: HolderRow): void =>
  replaceFile(rowOf(folder), `${JSON.stringify(row)}\n`);

const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);

/** Last beat of each lock that this process looked at, with the time at which it was first seen. */
const seenBeats = new Map<string, { readonly beat: number; readonly at: number }>();

/** Time for which the holder has not increased its number, on the monotonic clock, which stands still during a suspend. */
function silentMs(folder: string, beat: number): number {
  const now = monotonicMs();
  const seen = seenBeats.get(folder);
  const since = seen?.beat === beat ? seen.at : now;
  seenBeats.set(folder, { beat, at: since });
  // Processes of one machine share the clock, unless a container has its own: then its number may lie in the future.
  return Math.max(now - since, beat > 0 && beat <= now ? now - beat : 0);
}

const beatMs = 5_000;

/** Silence after which a live owner counts as stalled. */
export const stalledMs = 60_000;

/** Says that an owner is stalled, and how to continue or end it. */
export const stalledText = ({ pid, host }: Pick<Owner, 'pid' | 'host'>, ms: number): string =>
  `process ${pid} on ${host} stalled ${formatDuration(ms)} ago; continue it: kill -CONT ${pid}; end it: kill -9 ${pid}`;

/** What a process that waits for a lock does about the holder. */
export interface LockPatience {
  /** Called once if another process holds the lock, and once more if that process is stalled. */
  readonly onWait?: ((holder: Owner, stalledMs?: number) => void) | undefined;
  /** Time after which to give up if the holder has been stalled for so long. Defaults to never. */
  readonly giveUpMs?: number | undefined;
}

const lookEveryMs = 500;

/**
 * Returns a function to call after every failed attempt to take one of the locks. It throws LOCK_STALLED if all of their
 * holders are stalled for too long. Holders that make progress are awaited as long as it takes.
 */
export function watchHolders(
  folders: () => readonly string[],
  { onWait, giveUpMs = Number.POSITIVE_INFINITY }: LockPatience,
): () => void {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let told: 'nothing' | 'waiting' | 'stalled' = 'nothing';
  return () => {
    if (performance.now() - lookedAt < lookEveryMs) return;
    const states = folders().map(readLock);
    const held = states.flatMap(state => (state.kind === 'held' ? state : []));
    const [latest] = held.toSorted((a, b) => a.silentMs - b.silentMs);
    if (latest === undefined || held.length < states.length) return;
    lookedAt = performance.now();
    const { owner, silentMs: ms } = latest;
    if (told === 'nothing') onWait?.(owner);
    if (ms < stalledMs) {
      told = 'waiting';
      return;
    }
    if (told !== 'stalled') onWait?.(owner, ms);
    told = 'stalled';
    if (ms >= giveUpMs)
      throw new RepriseError('LOCK_STALLED', `a lock is held by ${stalledText(owner, ms)}`, {
        hint: 'the work is kept; continue or end that process, then start this command again',
      });
  };
}

/** Locks of this process whose rows are renewed. */
const beating = new Map<FolderLock, () => void>();
let heart: NodeJS.Timeout | undefined;

function startBeating(lock: FolderLock, beat: () => void): void {
  beating.set(lock, beat);
  heart ??= setInterval(() => {
    for (const each of beating.values()) each();
  }, beatMs).unref();
}

function stopBeating(lock: FolderLock): void {
  beating.delete(lock);
  if (beating.size > 0) return;
  clearInterval(heart);
  heart = undefined;
}

/** A lock that is held until it is released. */
export interface FolderLock {
  /** Fencing token. Greater than the token of every earlier holder. */
  readonly token: number;
  /** Marker for the commands of the holder. If this process dies, the next holder awaits them. */
  readonly marker: Marker;
  /** Aborted if the lock is lost. The kernel takes it from no live process, so it never is. */
  readonly lost: AbortSignal;
  isHeld(): boolean;
  /** Waits for commands of dead holders that did not release the lock, and ends them after `patienceMs`. */
  settle(options: { readonly patienceMs: number; readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Idempotent. */
  release(): void;
  /** Gives up the lock as a killed process does. */
  drop(): void;
}

export interface FolderLockRequest {
  readonly owner: Owner;
  /** Marker for the commands of the holder. Defaults to one with the token. */
  readonly marker?: Marker | undefined;
}

const neverLost = new AbortController().signal;

/** Takes a lock if it is free. */
export function tryLock(folder: string, { owner, marker: own }: FolderLockRequest): FolderLock | undefined {
  const kernel = tryKernelLock(mutexOf(folder));
  if (!kernel) return undefined;
  try {
    return heldLock(folder, { kernel, owner, own });
  } catch (error) {
    kernel.release();
    throw error;
  }
}

interface TakenMutex {
  readonly kernel: KernelLock;
  readonly owner: Owner;
  readonly own: Marker | undefined;
}

function heldLock(folder: string, { kernel, owner, own }: TakenMutex): FolderLock {
  const before = readRow(folder);
  const token = before.token + 1;
  const marker = own ?? { REPRISE_REPOSITORY_LOCK: `${folder}:${token}` };
  let unsettled = [...before.unsettled, ...(before.holder ? [before.holder] : [])];
  const write = (holder: Unsettled | undefined) =>
    writeRow(folder, { token, ...(holder ? { holder } : {}), unsettled, beat: monotonicMs() });
  const isHeld = () => kernel.isIntact() && readRow(folder).token === token;
  const drop = () => {
    forget();
    stopBeating(lock);
    kernel.release();
    wake(folder);
  };
  const lock: FolderLock = {
    token,
    marker,
    lost: neverLost,
    isHeld,
    settle: async ({ patienceMs, signal }) => {
      if (unsettled.length === 0) return;
      for (const former of unsettled) await settleOrphans(former, { patienceMs, signal });
      unsettled = [];
      if (isHeld()) write({ owner, marker });
    },
    release: () => {
      try {
        if (isHeld()) write(undefined);
      } catch {
        // A full disk. The next holder looks for commands of this one, and finds none.
      } finally {
        drop();
      }
    },
    drop,
  };
  const forget = onAbandoned(owner.incarnation.split(':')[0] ?? '', drop);
  write({ owner, marker });
  startBeating(lock, () => {
    try {
      if (isHeld()) write({ owner, marker });
    } catch {
      // A full disk, which the work itself reports.
    }
  });
  return lock;
}

/** Time for git commands of a dead holder to end by themselves. */
const orphanPatienceMs = 10_000;

/**
 * Waits for commands of a killed holder, which keep running and would race with the new holder for the same worktree, ref
 * or agent. Ends them after a timeout, which indicates a hanging hook. Commands in another pid namespace cannot be seen, so
 * they only get the time.
 */
async function settleOrphans(
  { owner, marker }: Unsettled,
  { patienceMs, signal }: { readonly patienceMs: number; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  if (!isVisible(owner)) return pause(orphanPatienceMs, signal);
  const began = performance.now();
  while (markedWith(marker).length > 0) {
    if (performance.now() - began >= patienceMs) {
      await endTrees({ roots: [], marked: marker, graceMs: 2000 });
      return;
    }
    await pause(pollMs.waiting, signal);
  }
}

interface TurnOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after every failed attempt. */
  readonly onBusy?: (() => void) | undefined;
  /** Whether an attempt would succeed now. */
  readonly isFree: () => boolean;
}

/** A call that waits for a lock. */
interface LockWaiter {
  wake: () => void;
}

/** Waiting calls of this process by the folder of the lock, in order of arrival. A release wakes them at once. */
const waiters = new Map<string, Set<LockWaiter>>();

const wake = (folder: string): void => {
  for (const waiter of waiters.get(folder) ?? []) waiter.wake();
};

const pollMs = { first: 2, longest: 10, waiting: 25, waitedLong: 8 };
const longWaitMs = 2_000;

/**
 * Waits until `attempt` succeeds. One process at a time attempts; the others wait for that right, and poll the more often
 * the longer they have waited. So a process that takes a lock repeatedly cannot starve others. If the process whose turn it
 * is leaves the lock free, it is stopped, and the others do not wait for it.
 */
export async function inTurn<T>(
  folder: string,
  attempt: () => T | undefined,
  { signal, onBusy, isFree }: TurnOptions,
): Promise<T> {
  signal?.throwIfAborted();
  const began = performance.now();
  const next = nextOf(folder);
  const taken = isKernelLocked(next) ? undefined : attempt();
  if (taken !== undefined) return taken;
  const waiter: LockWaiter = { wake: () => {} };
  waiters.set(folder, (waiters.get(folder) ?? new Set()).add(waiter));
  let turn: KernelLock | undefined;
  const missesTurn = turnWatch(isFree);
  try {
    for (let pauseMs = pollMs.first; ; ) {
      turn ??= tryKernelLock(next);
      const result = turn || missesTurn() ? attempt() : undefined;
      if (result !== undefined) return result;
      onBusy?.();
      await pauseUnlessWoken(pauseMs * (0.5 + Math.random()), waiter, signal);
      const age = Math.min(1, (performance.now() - began) / longWaitMs);
      pauseMs = turn
        ? Math.min(pauseMs * 1.5, pollMs.longest)
        : pollMs.waiting - age * (pollMs.waiting - pollMs.waitedLong);
    }
  } finally {
    const others = waiters.get(folder);
    others?.delete(waiter);
    if (others?.size === 0) waiters.delete(folder);
    turn?.release();
    wake(folder);
  }
}

/** A process whose turn it is takes a free lock within milliseconds, unless it is stopped. */
const missedTurn = { looks: 5, everyMs: 250 };

/** Returns a function that tells whether the process whose turn it is leaves the lock free. Looks rarely: each look disturbs it. */
function turnWatch(isFree: () => boolean): () => boolean {
  let lookedAt = performance.now();
  let free = 0;
  return () => {
    if (performance.now() - lookedAt < missedTurn.everyMs) return false;
    lookedAt = performance.now();
    free = isFree() ? free + 1 : 0;
    return free >= missedTurn.looks;
  };
}

async function pauseUnlessWoken(
  ms: number,
  waiter: LockWaiter,
  signal: AbortSignal | undefined,
): Promise<void> {
  const woken = new AbortController();
  waiter.wake = () => woken.abort();
  try {
    await delay(ms, undefined, { signal: signal ? AbortSignal.any([signal, woken.signal]) : woken.signal });
  } catch (error) {
    signal?.throwIfAborted();
    if (!woken.signal.aborted) throw error;
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

/** Names of the locks. To prevent a deadlock, `land` is never taken while `worktrees` is held. */
export const repositoryLocks = ['land', 'worktrees'] as const;

export interface LockRequest extends LockPatience {
  readonly repository: Repository;
  readonly name: (typeof repositoryLocks)[number];
  readonly owner: Owner;
  readonly signal?: AbortSignal | undefined;
}

/** Proof that the lock is held. */
export interface HeldLock extends Pick<FolderLock, 'token' | 'lost' | 'isHeld'> {
  /** Repository whose git commands carry the marker of the lock. If this process dies, the next holder awaits them. */
  readonly repository: Repository;
}

/** Returns the folder of a lock. */
export const lockFolder = ({ commonDir }: Pick<Repository, 'commonDir'>, name: LockRequest['name']): string =>
  join(commonDir, 'reprise', 'locks', name);

/** Whether no live process holds the lock. Calls of this process may still be queued for it. */
export const isLockFree = (repository: Pick<Repository, 'commonDir'>, name: LockRequest['name']): boolean =>
  !isKernelLocked(mutexOf(lockFolder(repository, name)));

/**
 * Runs the body while it holds the lock exclusively, across processes and calls. The lock passes on only when its holder
 * releases it or dies. Rejects with the signal's reason if aborted while it waits. Rethrows the error of the body.
 */
export async function withRepositoryLock<T>(
  request: LockRequest,
  body: (held: HeldLock) => Promise<T>,
): Promise<T> {
  const held = await takeRepositoryLock(request);
  try {
    return await body(held);
  } finally {
    held.release();
  }
}

/** Lock that outlives the call that acquired it. */
export interface TakenLock extends HeldLock {
  /** Releases the lock. Idempotent. */
  release(): void;
}

/**
 * Acquires a lock for several calls. The lock becomes free when it is released or its owner is abandoned. Throws
 * LOCK_STALLED.
 */
export async function takeRepositoryLock(request: LockRequest): Promise<TakenLock> {
  const { repository, name, owner, signal } = request;
  const folder = lockFolder(repository, name);
  const lock = await inTurn(folder, () => tryLock(folder, { owner }), {
    signal,
    onBusy: watchHolders(() => [folder], request),
    isFree: () => isLockFree(repository, name),
  });
  try {
    await lock.settle({ patienceMs: orphanPatienceMs, signal });
  } catch (error) {
    lock.release();
    throw error;
  }
  const { token, marker, lost, isHeld, release } = lock;
  return {
    token,
    lost,
    isHeld,
    release,
    repository: { ...repository, git: repository.git.with({ env: marker }) },
  };
}
