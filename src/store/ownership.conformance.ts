import { describe, expect, it } from 'vitest';
import {
  completed,
  newRun,
  type OpenStore,
  owner,
  takeover,
  time,
  withStore,
} from './samples.conformance.ts';

/** Leases and fencing. */
export function describeOwnership(open: OpenStore): void {
  describe('ownership', () => {
    it(
      'reports a live owner, whatever the time',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        const result = await store.acquire({
          ...takeover('r1'),
          now: time(99_999_999),
          provablyDead: undefined,
        });
        expect(result).toStrictEqual({ kind: 'held', owner: owner('ann'), expiresAt: time(10_000) });
        expect(await store.list()).toMatchObject([{ owner: { incarnation: 'ann', epoch: 1 } }]);
      }),
    );

    it(
      'grants the run of a dead owner to the next caller, with the next epoch',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        const result = await store.acquire(takeover('r1'));
        expect(result).toEqual({ kind: 'acquired', lease: { epoch: 2, incarnation: 'bob' } });
        const summary = { owner: { ...owner('bob'), epoch: 2, expiresAt: time(20_000) } };
        expect(await store.list()).toMatchObject([summary]);
      }),
    );

    it(
      'grants a released run at once and never reuses an epoch',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.release('r1', lease, 'waiting');
        expect(await store.list()).toMatchObject([{ owner: null, status: 'waiting' }]);
        const result = await store.acquire({ ...takeover('r1'), provablyDead: undefined });
        expect(result).toMatchObject({ kind: 'acquired', lease: { epoch: 2 } });
      }),
    );

    it(
      'keeps the status of a run that is released without a new status',
      withStore(open, async ({ store }) => {
        const first = await store.createRun(newRun('r1'));
        await store.release('r1', first, 'failed');
        const taken = await store.acquire({ ...takeover('r1'), now: time(1) });
        if (taken.kind === 'acquired') await store.release('r1', taken.lease);
        expect(await store.list()).toMatchObject([{ owner: null, status: 'failed' }]);
      }),
    );

    it(
      'grants a run at once if its owner, and no other, is provably dead',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        const early = { ...takeover('r1'), now: time(1) };
        expect(await store.acquire({ ...early, provablyDead: 'carl' })).toMatchObject({ kind: 'held' });
        expect(await store.acquire({ ...early, provablyDead: 'ann' })).toMatchObject({ kind: 'acquired' });
      }),
    );

    it(
      'shows when the owner last renewed its lease',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        expect(await store.renew('r1', lease, time(30_000))).toBe(true);
        const request = { ...takeover('r1'), provablyDead: undefined };
        expect(await store.acquire(request)).toMatchObject({ kind: 'held', expiresAt: time(30_000) });
      }),
    );

    it(
      'lets an owner continue, whatever the time, until another process acquires the run',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.append({
          runId: 'r1',
          lease,
          expectedSeq: 1,
          at: time(60_000),
          events: [completed('a')],
        });
        expect(await store.renew('r1', lease, time(70_000))).toBe(true);
        expect(await store.read('r1')).toHaveLength(2);
      }),
    );

    it(
      'fences out a previous owner: none of its writes has an effect',
      withStore(open, async ({ store }) => {
        const old = await store.createRun(newRun('r1'));
        await store.acquire(takeover('r1'));
        await store.post('r1', { kind: 'cancel', reason: 'stop' }, time(10_001));
        const consumed = (await store.inbox('r1')).map(entry => entry.id);
        const summaries = await store.list();

        const batch = {
          runId: 'r1',
          lease: old,
          expectedSeq: 1,
          at: time(10_002),
          events: [completed('a')],
          consumed,
        };
        const child = { pid: 99, processStart: '7', step: 'a' };
        await expect(store.append(batch)).rejects.toMatchObject({ code: 'FENCED' });
        await expect(store.append({ ...batch, expectedSeq: 99 })).rejects.toMatchObject({ code: 'FENCED' });
        await expect(store.addProcess('r1', old, child)).rejects.toMatchObject({ code: 'FENCED' });
        expect(await store.renew('r1', old, time(99_000))).toBe(false);
        await store.release('r1', old, 'failed');

        expect(await store.read('r1')).toHaveLength(1);
        expect(await store.inbox('r1')).toHaveLength(1);
        expect(await store.processes('r1')).toEqual([]);
        expect(await store.list()).toEqual(summaries);
      }),
    );

    it(
      'reports whether a lease is valid, which it is until the run is acquired or released',
      withStore(open, async ({ store }) => {
        const old = await store.createRun(newRun('r1', { expiresAt: time(0) }));
        expect(await store.holdsRun('r1', old)).toBe(true);
        expect(await store.holdsRun('r1', { ...old, incarnation: 'mallory' })).toBe(false);
        expect(await store.holdsRun('r1', { ...old, epoch: 2 })).toBe(false);
        expect(await store.holdsRun('nope', old)).toBe(false);
        const taken = await store.acquire(takeover('r1'));
        if (taken.kind === 'held') throw new Error('the owner was dead');
        expect(await store.holdsRun('r1', old)).toBe(false);
        expect(await store.holdsRun('r1', taken.lease)).toBe(true);
        await store.release('r1', taken.lease);
        expect(await store.holdsRun('r1', taken.lease)).toBe(false);
      }),
    );

    it(
      'fences out an earlier epoch of the same incarnation',
      withStore(open, async ({ store }) => {
        const old = await store.createRun(newRun('r1'));
        const { kind } = await store.acquire(takeover('r1', 'ann'));
        expect(kind).toBe('acquired');
        const batch = { runId: 'r1', expectedSeq: 1, at: time(10_001), events: [completed('a')] };
        await expect(store.append({ ...batch, lease: old })).rejects.toMatchObject({ code: 'FENCED' });
        await store.append({ ...batch, lease: { epoch: 2, incarnation: 'ann' } });
      }),
    );

    it(
      'fences out another incarnation that claims the right epoch',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        const lease = { epoch: 1, incarnation: 'mallory' };
        await expect(
          store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] }),
        ).rejects.toMatchObject({ code: 'FENCED' });
        expect(await store.renew('r1', lease, time(99_000))).toBe(false);
      }),
    );

    it(
      'fences out the process that released the run',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.release('r1', lease, 'waiting');
        const batch = { runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] };
        await expect(store.append(batch)).rejects.toMatchObject({ code: 'FENCED' });
        expect(await store.renew('r1', lease, time(99_000))).toBe(false);
      }),
    );

    it(
      'grants the lease to exactly one of 8 concurrent callers',
      withStore(open, async ({ store, reopen }) => {
        await store.createRun(newRun('r1'));
        const names = Array.from({ length: 8 }, (_, index) => `racer-${index}`);
        const racers = await Promise.all(
          names.map(async name => ({ name, store: (await reopen?.()) ?? store })),
        );
        const results = await Promise.all(
          racers.map(racer => racer.store.acquire(takeover('r1', racer.name))),
        );
        await Promise.all(racers.filter(racer => racer.store !== store).map(racer => racer.store.close()));

        const winners = results.filter(result => result.kind === 'acquired');
        expect(winners).toHaveLength(1);
        const [{ owner: holder } = { owner: null }] = await store.list();
        expect(winners[0]?.lease).toEqual({ epoch: 2, incarnation: holder?.incarnation });
      }),
    );

    it(
      'cannot acquire, renew or release a run that does not exist',
      withStore(open, async ({ store }) => {
        const lease = { epoch: 1, incarnation: 'ann' };
        await expect(store.acquire(takeover('nope'))).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
        expect(await store.renew('nope', lease, time(1))).toBe(false);
        await expect(store.release('nope', lease, 'failed')).resolves.toBeUndefined();
      }),
    );
  });
}
