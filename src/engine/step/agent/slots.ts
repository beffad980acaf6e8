import { join } from 'node:path';
import type { Clock } from '../../../core/index.ts';
import {
  type LockState,
  namesIn,
  readLock,
  releaseToken,
  safeSegment,
  takeToken,
} from '../../../git/index.ts';
import type { Owner } from '../../../store/index.ts';

export interface SlotRequest {
  readonly stateDir: string;
  readonly agent: string;
  /** Number of slots of the agent. */
  readonly places: number;
  /** Owner of the slot. Its incarnation is unique to the session. */
  readonly owner: Owner;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called once if all slots are taken. */
  readonly onWait: () => void;
}

/** A slot of an agent, held until it is released. */
export interface HeldSlot {
  release(): void;
}

const pollMs = { first: 20, max: 500 };

/**
 * Waits for one of the slots that an agent has across all processes of the project. Each slot is a separate lock,
 * which is taken over only from an owner that is provably dead. Rejects with the signal's reason.
 */
export async function takeSlot(request: SlotRequest): Promise<HeldSlot> {
  const { clock, signal } = request;
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pauseMs * 1.5, pollMs.max)) {
    signal.throwIfAborted();
    const held = takeFree(request);
    if (held) return held;
    if (pauseMs === pollMs.first) request.onWait();
    await clock.waitUntil(clock.now() + pauseMs, signal);
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

function takeFree({ stateDir, agent, places: slots, owner }: SlotRequest): HeldSlot | undefined {
  for (let slot = 1; slot <= slots; slot++) {
    const folder = slotFolder(stateDir, agent, slot);
    const lock = readLock(folder);
    const held = { token: lock.token + 1, owner };
    if (lock.kind !== 'held' && takeToken(folder, held)) return { release: () => releaseToken(folder, held) };
  }
  return undefined;
}

const slotFolder = (stateDir: string, agent: string, slot: number): string =>
  join(stateDir, 'locks', 'agents', safeSegment(agent), String(slot));

/** Returns the state of every slot that was ever taken, by number. Changes nothing. */
export const slotsOf = (
  stateDir: string,
  agent: string,
): readonly { readonly slot: number; readonly lock: LockState }[] =>
  namesIn(join(stateDir, 'locks', 'agents', safeSegment(agent)))
    .flatMap(name => (/^[1-9]\d*$/.test(name) ? Number(name) : []))
    .sort((a, b) => a - b)
    .map(slot => ({ slot, lock: readLock(slotFolder(stateDir, agent, slot)) }));
