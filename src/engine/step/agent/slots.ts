import { join } from 'node:path';
import type { Clock } from '../../../core/time.ts';
import { namesIn } from '../../../git/files.ts';
import { type LockState, readLock, releaseToken, takeToken } from '../../../git/lock-file.ts';
import { safeSegment } from '../../../git/names.ts';
import type { Owner } from '../../../store/port.ts';

export interface SlotRequest {
  readonly stateDir: string;
  readonly agent: string;
  /** How many may be taken at once. */
  readonly places: number;
  /** Its incarnation is that of this one session. */
  readonly owner: Owner;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called once if all are taken. */
  readonly onWait: () => void;
}

/** One of the places of an agent, held until it is given back. */
export interface HeldSlot {
  release(): void;
}

const pollMs = { first: 20, longest: 500 };

/**
 * Waits for one of the places that an agent has across all processes of the project. Each is a lock of its own, and is
 * taken over only from an owner that is provably dead. Rejects with the signal's reason while it waits.
 */
export async function takeSlot(request: SlotRequest): Promise<HeldSlot> {
  const { clock, signal } = request;
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pauseMs * 1.5, pollMs.longest)) {
    signal.throwIfAborted();
    const held = takeFree(request);
    if (held) return held;
    if (pauseMs === pollMs.first) request.onWait();
    await clock.waitUntil(clock.now() + pauseMs, signal);
  }
}

/** Whether one could be taken now. */
export const hasFreeSlot = ({
  stateDir,
  agent,
  places,
}: Pick<SlotRequest, 'stateDir' | 'agent' | 'places'>) =>
  Array.from({ length: places }, (_, place) => placeFolder(stateDir, agent, place + 1)).some(
    folder => readLock(folder).kind !== 'held',
  );

function takeFree({ stateDir, agent, places, owner }: SlotRequest): HeldSlot | undefined {
  for (let place = 1; place <= places; place++) {
    const folder = placeFolder(stateDir, agent, place);
    const lock = readLock(folder);
    const held = { token: lock.token + 1, owner };
    if (lock.kind !== 'held' && takeToken(folder, held)) return { release: () => releaseToken(folder, held) };
  }
  return undefined;
}

const placeFolder = (stateDir: string, agent: string, place: number): string =>
  join(stateDir, 'locks', 'agents', safeSegment(agent), String(place));

/** How the places of an agent stand that were ever taken, by number. Changes nothing. */
export const placesOf = (
  stateDir: string,
  agent: string,
): readonly { readonly place: number; readonly lock: LockState }[] =>
  namesIn(join(stateDir, 'locks', 'agents', safeSegment(agent)))
    .flatMap(name => (/^[1-9]\d*$/.test(name) ? Number(name) : []))
    .sort((a, b) => a - b)
    .map(place => ({ place, lock: readLock(placeFolder(stateDir, agent, place)) }));
