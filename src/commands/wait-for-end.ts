import { setTimeout as delay } from 'node:timers/promises';
import type { CommandIo } from '../project/host.ts';
import { hasEnded, ownershipOf } from '../project/runs.ts';
import type { EventStore, RunSummary } from '../store/port.ts';

const pollMs = 50;

export interface WaitOptions {
  readonly io: CommandIo;
  readonly store: EventStore;
  readonly runId: string;
  readonly timeoutMs: number;
}

/** The run once it has ended or nobody has it any more; `undefined` if the time ran out first. */
export async function waitForEnd({
  io,
  store,
  runId,
  timeoutMs,
}: WaitOptions): Promise<RunSummary | undefined> {
  const giveUpAt = io.now() + timeoutMs;
  for (;;) {
    const run = (await store.find(runId)).find(found => found.runId === runId);
    if (run && (hasEnded(run) || ownershipOf(run, io.now()).kind !== 'held')) return run;
    if (io.now() >= giveUpAt || io.interrupt.aborted) return undefined;
    await delay(pollMs);
  }
}
