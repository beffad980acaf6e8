import { join } from 'node:path';
import {
  type FolderLock,
  inTurn,
  type LockPatience,
  type LockState,
  namesIn,
  readLock,
  safeSegment,
  stalledMs,
  tryLock,
  watchHolders,
} from '../../../git/index.ts';
import type { Owner } from '../../../store/index.ts';

export interface SlotRequest extends LockPatience {
  readonly stateDir: string;
  readonly agent: string;
  /** Number of slots of the agent. */
  readonly places: number;
  /** Owner of the slot. Its incarnation is unique to the session. */
  readonly owner: Owner;
  /** Environment variables of the session's processes. If this process dies, the next holder of the slot ends them. */
  readonly marker: Readonly<Record<string, string>>;
  /** Whether a slot whose holder is stalled does not count: the slots save work, and nothing depends on them. */
  readonly skipsStalled?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** A slot of an agent, held until it is released. */
export type HeldSlot = Pick<FolderLock, 'release'>;

/**
 * Waits for one of the slots that an agent has across all processes of the project. Each slot is a separate lock. The
 * sessions of a holder that died are ended before its slot is used again. Rejects with the signal's reason.
 */
export async function takeSlot(request: SlotRequest): Promise<HeldSlot> {
  const { stateDir, agent, signal } = request;
  const slot = await inTurn(agentFolder(stateDir, agent), () => takeFree(request), {
    signal,
    onBusy: watchHolders(() => foldersOf(request), request),
    isFree: () => hasFreeSlot(request),
  });
  try {
    await slot.settle({ patienceMs: 0, signal });
    return slot;
  } catch (error) {
    slot.release();
    throw error;
  }
}

/** Whether a slot is free. */
export const hasFreeSlot = (request: SlotsOf): boolean =>
  foldersOf(request).some(folder => readLock(folder).kind !== 'held');

function takeFree(request: SlotRequest): FolderLock | undefined {
  for (const folder of foldersOf(request)) {
    const lock = tryLock(folder, request);
    if (lock) return lock;
  }
  return undefined;
}

type SlotsOf = Pick<SlotRequest, 'stateDir' | 'agent' | 'places' | 'skipsStalled'>;

/** Folders of the slots of an agent, with another one for each slot that does not count. */
function foldersOf({ stateDir, agent, places, skipsStalled }: SlotsOf): readonly string[] {
  const folders: string[] = [];
  for (let slot = 1, left = places; left > 0; slot++) {
    const folder = slotFolder(stateDir, agent, slot);
    folders.push(folder);
    const lock = skipsStalled ? readLock(folder) : undefined;
    if (!(lock?.kind === 'held' && lock.silentMs >= stalledMs)) left--;
  }
  return folders;
}

const agentFolder = (stateDir: string, agent: string): string =>
  join(stateDir, 'locks', 'agents', safeSegment(agent));

const slotFolder = (stateDir: string, agent: string, slot: number): string =>
  join(agentFolder(stateDir, agent), String(slot));

/** Returns the state of every slot that was ever taken, by number. Changes nothing. */
export const slotsOf = (
  stateDir: string,
  agent: string,
): readonly { readonly slot: number; readonly lock: LockState }[] =>
  namesIn(agentFolder(stateDir, agent))
    .flatMap(name => (/^[1-9]\d*$/.test(name) ? Number(name) : []))
    .sort((a, b) => a - b)
    .map(slot => ({ slot, lock: readLock(slotFolder(stateDir, agent, slot)) }));
