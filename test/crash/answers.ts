import type { EventStore } from '../../src/store/port.ts';

const at = '2026-01-01T00:00:00.000Z';

/** Posts every approval and signal that a run waits for, or is going to wait for. */
export async function answersFor(name: string, store: EventStore, runId: string): Promise<void> {
  const events = await store.read(runId);
  const open = new Set(events.filter(({ type }) => type === 'approval.requested').map(({ step }) => step));
  for (const { type, step } of events) if (type === 'approval.given') open.delete(step);
  for (const step of open)
    if (step) await store.post(runId, { kind: 'approval', step, choice: 'approve' }, at);
  if (name !== 'signal') return;
  const sent =
    events.filter(({ type }) => type === 'signal.received').length + (await store.inbox(runId)).length;
  for (let n = sent; n < 2; n++) await store.post(runId, { kind: 'signal', name: 'go', payload: n }, at);
}
