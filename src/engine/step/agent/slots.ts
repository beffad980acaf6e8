import { join } from 'node:path';
import {
  type FolderLock,
  inTurn,
  type LockState,
  namesIn,
  readLock,
  safeSegment,
  tryLock,
} from '../../../git/index.ts';
import type { Owner } from '../../../store/index.ts';

export interface SlotRequest {
  readonly stateDir: string;
  readonly agent: string;
  /** Number of slots of the agent. */
  readonly places: number;
  /** Owner of the slot. Its incarnation is unique to the session. */
  readonly owner: Owner;
  /** Environment variables of the session's processes. If this process dies, the next holder of the slot ends them. */
  readonly marker: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Called once if all slots are taken. */
  readonly onWait: () => void;
}

/** A slot of an agent, held until it is released. */
export type HeldSlot = Pick<FolderLock, 'release'>;

/**
 * Waits for one of the slots that an agent has across all processes of the project. Each slot is a separate lock. The
 * sessions of a holder that died are ended before its slot is used again. Rejects with the signal's reason.
 */
export async function takeSlot(request: SlotRequest): Promise<HeldSlot> {
  const { stateDir, agent, signal, onWait } = request;
  let notify: (() => void) | undefined = onWait;
  const onBusy = () => {
    notify?.();
    notify = undefined;
  };
  const slot = await inTurn(agentFolder(stateDir, agent), () => takeFree(request), { signal, onBusy });
  try {
    await slot.settle({ patienceMs: 0, signal });
    return slot;
  } catch (error) {
    slot.release();
    throw error;
  }
}

/** Whether a slot is free. */
export const hasFreeSlot = ({
  stateDir,
  agent,
  places: slots,
}: Pick<SlotRequest, 'stateDir' | 'agent' | 'places'>) =>
  Array.from({ length: slots }, (_, slot) => slotFolder(stateDir, agent, slot + 1)).some(
    folder => readLock(folder).kind !== 'held',
  );

function takeFree({ stateDir, agent, places: slots, owner, marker }: SlotRequest): FolderLock | undefined {
  for (let slot = 1; slot <= slots; slot++) {
    const lock = tryLock(slotFolder(stateDir, agent, slot), { owner, marker });
    if (lock) return lock;
  }
  return undefined;
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
