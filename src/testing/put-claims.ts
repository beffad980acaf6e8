import type { CaseClaim } from '../cases/manifest/manifest.ts';
import type { EventStore } from '../store/port.ts';

/** Before anything that happens in a case. */
const longAgo = '2026-01-01T00:00:00.000Z';

/** Others are not in the case, so whatever they hold is held by a person, who never lets go. */
export async function putClaims(
  { claims: store }: Pick<EventStore, 'claims'>,
  claims: readonly CaseClaim[],
): Promise<void> {
  for (const { task, state, version, by } of claims) {
    await store.take({ task, version, by, seen: 0, runId: null, at: longAgo });
    if (state !== 'held') await store.settle({ task, state, at: longAgo });
  }
}
