import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RepriseError } from '../core/errors.ts';
import type { Timestamp } from '../core/time.ts';
import { type Claim, isHeld } from './claims.ts';
import type { EventStore, RunStatus } from './port.ts';
import { newRun, type OpenStore, takeover, time, withStore } from './samples.conformance.ts';

const tasks = ['a', 'b'] as const;
const runIds = ['r1', 'r2', 'r3'] as const;

const task = fc.constantFrom(...tasks);
const runId = fc.constantFrom(...runIds);
/** Tokens that a claimant may have seen, current or stale. */
const token = fc.nat({ max: 4 });
const move = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('take' as const), task, runId, seen: token }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      task,
      token: fc.option(token, { nil: undefined, freq: 8 }),
      state: fc.constantFrom('landed' as const, 'released' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('status' as const),
      runId,
      status: fc.constantFrom<RunStatus>(
        'running',
        'waiting',
        'suspended',
        'completed',
        'failed',
        'cancelled',
      ),
    }),
  },
);
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

/** Three runs that do not communicate. */
export function describeClaimMoves(open: OpenStore): void {
  describe('three claimants', () => {
    it('never hold the same task or get the same token, and every change raises the revision', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(move, { maxLength: 30 }), async moves => {
          await withStore(open, ({ store }) => play(store, moves))();
        }),
        { numRuns: 60 },
      );
    });
  });
}

async function play(store: EventStore, moves: readonly Move[]): Promise<void> {
  for (const id of runIds) await store.createRun(newRun(id));
  let before = await observe(store);
  for (const [index, each] of moves.entries()) {
    await make(store, { move: each, at: time(index), before: before.claims });
    const after = await observe(store);
    expect(after.revision).toBeGreaterThanOrEqual(before.revision);
    expect(after.revision !== before.revision).toBe(after.holders !== before.holders);
    before = after;
  }
}

async function observe({ claims: store }: EventStore) {
  const claims = await store.list();
  // The status of the run is irrelevant for a settled claim.
  const seen = claims.map(claim => (claim.state === 'held' ? claim : { ...claim, runStatus: null }));
  return { claims, holders: JSON.stringify(seen), revision: await store.revision() };
}

interface Turn {
  readonly move: Move;
  readonly at: Timestamp;
  readonly before: readonly Claim[];
}

async function make(store: EventStore, { move, at, before }: Turn): Promise<void> {
  const claimOf = (name: string) => before.find(claim => claim.task === name);
  switch (move.kind) {
    case 'take': {
      const current = claimOf(move.task);
      const result = await take(store, move, at);
      if (result === undefined) return;
      const mayHave = (current?.token ?? 0) === move.seen && (!current || !isHeld(current));
      const hasIt = current !== undefined && isHeld(current) && current.runId === move.runId;
      expect(result.kind).toBe(mayHave || hasIt ? 'claimed' : 'taken');
      expect(result.claim.token).toBe(mayHave ? move.seen + 1 : current?.token);
      return;
    }
    case 'settle': {
      const current = claimOf(move.task);
      const isTheirs = move.token === undefined || move.token === current?.token;
      const isOpen = move.token === undefined || current?.state === 'held' || current?.state === move.state;
      const isSettled = await store.claims.settle({ ...move, at });
      expect(isSettled).toBe(current !== undefined && isTheirs && isOpen);
      return;
    }
    case 'status': {
      const taken = await store.acquire(takeover(move.runId));
      if (taken.kind === 'held') throw new Error('its owner was dead');
      await store.release(move.runId, taken.lease, move.status);
    }
  }
}

/** Returns `undefined` if the run has ended or the token was never issued. */
async function take(
  store: EventStore,
  { task, runId, seen }: Extract<Move, { kind: 'take' }>,
  at: Timestamp,
) {
  try {
    return await store.claims.take({ task, runId, seen, version: 'v1', by: runId, at });
  } catch (thrown) {
    const expected = thrown instanceof RepriseError && ['RUN_ENDED', 'STORE_FAILED'].includes(thrown.code);
    if (!expected) throw thrown;
    return undefined;
  }
}
