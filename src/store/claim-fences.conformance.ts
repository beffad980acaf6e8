import { describe, expect, it } from 'vitest';
import type { EventStore, Fence } from './port.ts';
import { newRun, type OpenStore, takeover, time, withStore } from './samples.conformance.ts';

const fenceOf = (epoch: number, incarnation: string): Fence => ({
  runId: 'r1',
  lease: { epoch, incarnation },
});

const ann = fenceOf(1, 'ann');
const bob = fenceOf(2, 'bob');

const take = (store: EventStore, fence: Fence, seen = 0) =>
  store.claims.take({ task: 'a', seen, version: 'v1', runId: 'r1', by: 'w', at: time(1), fence });

const settle = (store: EventStore, fence: Fence) =>
  store.claims.settle({ task: 'a', token: 1, state: 'landed', at: time(2), fence });

/** Claims by a process whose run has another owner now. */
export function describeClaimFences(open: OpenStore): void {
  describe('a process that lost its run', () => {
    it(
      'cannot settle a claim of the run, although its token is still current',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        await take(store, ann);
        await store.acquire(takeover('r1'));
        const before = await store.claims.list();
        await expect(settle(store, ann)).rejects.toMatchObject({ code: 'FENCED' });
        expect(await store.claims.list()).toEqual(before);
        expect(await settle(store, bob)).toBe(true);
        await expect(settle(store, ann)).rejects.toMatchObject({ code: 'FENCED' });
      }),
    );

    it(
      'neither gets the claims that the run holds nor new ones',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        await store.acquire(takeover('r1'));
        await expect(take(store, ann)).rejects.toMatchObject({ code: 'FENCED' });
        expect(await store.claims.list()).toEqual([]);
        expect(await take(store, bob)).toMatchObject({ kind: 'claimed', claim: { token: 1 } });
        await expect(take(store, ann)).rejects.toMatchObject({ code: 'FENCED' });
        expect(await take(store, bob)).toMatchObject({ kind: 'claimed', claim: { token: 1 } });
      }),
    );

    it(
      'is fenced out as soon as the run is released',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        await take(store, ann);
        await store.release('r1', ann.lease);
        await expect(settle(store, ann)).rejects.toMatchObject({ code: 'FENCED' });
        await expect(settle(store, { ...ann, runId: 'r9' })).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
      }),
    );
  });

  describe('a glance', () => {
    it(
      'returns the same claims and runs as the asynchronous reads',
      withStore(open, async ({ store }) => {
        const seen = () => [store.glance?.revision(), store.glance?.list({ status: 'running' })];
        const asked = async () => [await store.claims.revision(), await store.list({ status: 'running' })];
        expect(seen()).toEqual([0, []]);
        await store.createRun(newRun('r1'));
        await store.createRun(newRun('r2', { at: time(1) }));
        await take(store, ann);
        expect(seen()).toEqual(await asked());
        expect(seen()).toMatchObject([1, [{ runId: 'r2' }, { runId: 'r1' }]]);
        await store.release('r1', ann.lease, 'failed');
        expect(seen()).toEqual(await asked());
        expect(seen()).toMatchObject([2, [{ runId: 'r2' }]]);
      }),
    );

    it(
      'returns the owner of a run and the tasks that it holds',
      withStore(open, async ({ store }) => {
        const seen = (runId: string) => [
          store.glance?.ownerOf(runId)?.incarnation,
          store.glance?.tasksOf(runId),
        ];
        expect(seen('r1')).toEqual([undefined, []]);
        await store.createRun(newRun('r1'));
        await take(store, ann);
        expect(seen('r1')).toEqual([ann.lease.incarnation, ['a']]);
        await settle(store, ann);
        expect(seen('r1')).toEqual([ann.lease.incarnation, []]);
        await store.release('r1', ann.lease);
        expect(store.glance?.ownerOf('r1')).toBeNull();
      }),
    );

    it(
      'returns the workers',
      withStore(open, async ({ store }) => {
        expect(store.glance?.workers()).toEqual([]);
        await store.workers.put({
          ...{ incarnation: 'i', host: 'h', pid: 1, processStart: 's', name: 'ann', branch: 'main' },
          ...{ startedAt: time(1), beatAt: time(1), state: 'sleeping', costUsd: 0 },
        });
        expect(store.glance?.workers()).toEqual(await store.workers.list());
        expect(store.glance?.workers()).toHaveLength(1);
      }),
    );
  });
}
