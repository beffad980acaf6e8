import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RepriseError } from '../core/errors.ts';
import type { EventStore, Lease } from './port.ts';
import { completed, newRun, type OpenStore, owner, time, withStore } from './samples.conformance.ts';

const runIds = ['r1', 'r2'] as const;
const names = ['ann', 'bob'] as const;
type RunId = (typeof runIds)[number];
type Name = (typeof names)[number];

type Move =
  | { readonly kind: 'append'; readonly who: Name; readonly run: RunId; readonly count: number }
  | { readonly kind: 'take'; readonly who: Name; readonly run: RunId }
  | { readonly kind: 'release'; readonly who: Name; readonly run: RunId };

const who = fc.constantFrom(...names);
const run = fc.constantFrom(...runIds);
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      who,
      run,
      count: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const), who, run }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), who, run }) },
);

/** State of a run as one owner believes it to be. Another owner may have acquired the run since. */
interface Belief {
  lease: Lease;
  seq: number;
}

/** Two owners that do not communicate: the store alone checks what each believes. */
export function describeInterleavings(open: OpenStore): void {
  describe('two owners', () => {
    it('keep histories gapless and separate, however their operations interleave', async () => {
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
  const beliefs = new Map<string, Belief>();
  const holder = new Map<RunId, Name>();
  const written: Record<RunId, string[]> = { r1: [], r2: [] };
  for (const runId of runIds) {
    const lease = await store.createRun(newRun(runId, { events: [] }));
    beliefs.set(`ann ${runId}`, { lease, seq: 0 });
    holder.set(runId, 'ann');
  }
  for (const [index, { who, run, ...rest }] of moves.entries()) {
    const belief = beliefs.get(`${who} ${run}`);
    switch (rest.kind) {
      case 'append': {
        if (!belief) break;
        const outputs = Array.from({ length: rest.count }, (_, n) => `${run} ${who} ${index}.${n}`);
        const accepted = await append(store, run, belief, outputs);
        expect(accepted, `append of ${who} to ${run}`).toBe(holder.get(run) === who);
        if (accepted) written[run].push(...outputs);
        break;
      }
      case 'take': {
        const times = { now: time(10_000), expiresAt: time(10_000) };
        const request = { runId: run, owner: owner(who), ...times, provablyDead: holder.get(run) };
        const result = await store.acquire(request);
        if (result.kind === 'held') throw new Error('its owner was dead');
        beliefs.set(`${who} ${run}`, { lease: result.lease, seq: (await store.read(run)).length });
        holder.set(run, who);
        break;
      }
      case 'release':
        if (!belief) break;
        await store.release(run, belief.lease, 'waiting');
        if (holder.get(run) === who) holder.delete(run);
    }
  }
  for (const runId of runIds) {
    const history = await store.read(runId);
    expect(history.map(event => event.seq)).toEqual(history.map((_, index) => index + 1));
    expect(history.map(event => event.data)).toEqual(written[runId].map(output => ({ output })));
  }
}

async function append(store: EventStore, runId: RunId, belief: Belief, outputs: string[]): Promise<boolean> {
  const events = outputs.map(output => completed('step', output));
  try {
    await store.append({ runId, lease: belief.lease, expectedSeq: belief.seq, at: time(1), events });
  } catch (thrown) {
    if (thrown instanceof RepriseError && thrown.code === 'FENCED') return false;
    throw thrown;
  }
  belief.seq += outputs.length;
  return true;
}
