import type { RunningProcess } from '../process/start.ts';
import { isSameProcess } from '../process/table.ts';
import type { EndedTrees } from '../process/tree.ts';

/** Resolves when the promise does, or when the time is up. */
export async function within(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, timeUp]);
  clearTimeout(timer);
}

export interface Ending {
  readonly running: RunningProcess;
  /** Says so in the agent's own words; `false` if there are none. */
  readonly interrupt: () => boolean;
  /** Resolves when the agent has said that it stopped. */
  readonly reported: Promise<void>;
  readonly graceMs: number;
}

/**
 * Ends an agent with all that it started: by its own protocol, so that it can end its tools and keep its session;
 * then by SIGINT, SIGTERM and SIGKILL. Takes little more than the grace period.
 */
export async function endAgent({ running, interrupt, reported, graceMs }: Ending): Promise<EndedTrees> {
  const shareMs = graceMs / 4;
  if (interrupt()) {
    await within(Promise.race([reported, running.ended]), shareMs);
    running.endInput();
    await within(running.ended, shareMs);
  }
  if (sendInterrupt(running)) await within(running.ended, shareMs);
  return running.stop({ graceMs: shareMs });
}

function sendInterrupt({ identity }: RunningProcess): boolean {
  if (!identity || !isSameProcess(identity)) return false;
  try {
    return process.kill(identity.pid, 'SIGINT');
  } catch {
    return false;
  }
}
