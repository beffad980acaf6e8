import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../core/events.ts';
import { type ClaimRequest, type ClaimState, claimStates, isHeld, type Settlement } from './claims.ts';
import type { EventStore, Lease } from './port.ts';
import { newRun, type OpenStore, time, withStore } from './samples.conformance.ts';

const request = (runId: string | null, changes: Partial<ClaimRequest> = {}): ClaimRequest => ({
  task: 'fix-readme',
  seen: 0,
  version: 'v1',
  runId,
  by: runId === null ? 'a person' : `worker of ${runId}`,
  at: time(1),
  ...changes,
});

const settlement = (token: number | undefined, changes: Partial<Settlement> = {}): Settlement => ({
  task: 'fix-readme',
  token,
  state: 'landed',
  at: time(5),
  ...changes,
});

const outcomes = claimStates.filter((state): state is Exclude<ClaimState, 'held'> => state !== 'held');

/** Creates runs that can claim tasks. */
async function withRuns(store: EventStore, ...runIds: string[]): Promise<void> {
  for (const runId of runIds) await store.createRun(newRun(runId));
}

const end = (store: EventStore, runId: string, lease: Lease) =>
  store.append({ runId, lease, expectedSeq: 1, at: time(3), events: [failed] });

const failed: NewEvent = { type: 'run.failed', data: { error: { code: 'STEP_FAILED', message: 'no' } } };

const lease: Lease = { epoch: 1, incarnation: 'ann' };

/** Claims on tasks. */
export function describeClaims(open: OpenStore): void {
  describe('claims', () => {
    it(
      'are granted with token 1 if the task was never claimed',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1');
        const claim = {
          task: 'fix-readme',
          token: 1,
          state: 'held',
          version: 'v1',
          runId: 'r1',
          runStatus: 'running',
          by: 'worker of r1',
          at: time(1),
        };
        expect(await store.claims.take(request('r1'))).toStrictEqual({ kind: 'claimed', claim });
        expect(await store.claims.list()).toStrictEqual([claim]);
        expect(await store.claims.isHeld({ task: 'fix-readme', token: 1, runId: 'r1' })).toBe(true);
      }),
    );

    it(
      'are refused while the task is held, even with its current token',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        await store.claims.take(request('r1'));
        const before = await store.claims.list();
        for (const runId of ['r2', null]) {
          for (const seen of [0, 1, 2]) {
            const result = await store.claims.take(request(runId, { seen, at: time(2) }));
            expect(result).toEqual({ kind: 'taken', claim: before[0] });
          }
        }
        expect(await store.claims.list()).toEqual(before);
        expect(await store.claims.revision()).toBe(1);
      }),
    );

    it(
      'are refused with a stale token, although the task is free again',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        await store.claims.take(request('r1'));
        await store.claims.settle(settlement(1, { state: 'released' }));
        const stale = await store.claims.take(request('r2', { seen: 0 }));
        expect(stale).toMatchObject({ kind: 'taken', claim: { token: 1, state: 'released' } });
        const unheard = await store.claims.take(request('r2', { seen: 7 }));
        expect(unheard).toMatchObject({ kind: 'taken', claim: { token: 1 } });
        const taken = await store.claims.take(request('r2', { seen: 1 }));
        expect(taken).toMatchObject({ kind: 'claimed', claim: { token: 2, state: 'held', runId: 'r2' } });
      }),
    );

    it(
      'are returned unchanged to the run that already holds them',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1');
        const first = await store.claims.take(request('r1'));
        for (const seen of [0, 1, 9]) {
          const again = await store.claims.take(request('r1', { seen, version: 'v2', at: time(9) }));
          expect(again).toEqual(first);
        }
        expect(await store.claims.revision()).toBe(1);
      }),
    );

    it(
      'are not returned to a run from which they were released',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1');
        await store.claims.take(request('r1'));
        await store.claims.settle({ task: 'fix-readme', state: 'released', at: time(2) });
        expect(await store.claims.take(request('r1'))).toMatchObject({ kind: 'taken', claim: { token: 1 } });
      }),
    );

    it(
      'of different tasks are independent, and are listed by task',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        const names = ['b', 'a', 'B', '\u{1F600}', '\uFFFD'];
        for (const task of names) await store.claims.take(request('r1', { task }));
        await store.claims.settle(settlement(1, { task: 'b' }));
        const claims = await store.claims.list();
        expect(claims.map(claim => claim.task)).toEqual(names.toSorted());
        expect(claims.filter(isHeld)).toHaveLength(4);
        expect(await store.claims.isHeld({ task: 'a', token: 1, runId: 'r2' })).toBe(false);
        expect(await store.claims.isHeld({ task: 'nope', token: 1, runId: 'r1' })).toBe(false);
      }),
    );

    it(
      'are free when their run has ended, and held again if it resumes before another run claims them',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        await store.claims.take(request('r1'));
        await store.claims.take(request('r1', { task: 'other' }));
        await end(store, 'r1', lease);
        expect((await store.claims.list()).map(each => [each.state, each.runStatus, isHeld(each)])).toEqual([
          ['held', 'failed', false],
          ['held', 'failed', false],
        ]);
        expect(await store.claims.isHeld({ task: 'fix-readme', token: 1, runId: 'r1' })).toBe(false);
        const other = await store.claims.take(request('r2', { task: 'other', seen: 1 }));
        expect(other).toMatchObject({ kind: 'claimed', claim: { token: 2, runId: 'r2' } });

        const events: NewEvent[] = [{ type: 'run.resumed', data: {} }];
        await store.append({ runId: 'r1', lease, expectedSeq: 2, at: time(4), events });
        expect(await store.claims.isHeld({ task: 'fix-readme', token: 1, runId: 'r1' })).toBe(true);
        expect(await store.claims.isHeld({ task: 'other', token: 1, runId: 'r1' })).toBe(false);
        expect(await store.claims.take(request('r2', { seen: 1 }))).toMatchObject({ kind: 'taken' });
      }),
    );

    it(
      'are held while their run is waiting or has no owner',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        await store.claims.take(request('r1'));
        await store.release('r1', lease, 'waiting');
        expect(await store.claims.isHeld({ task: 'fix-readme', token: 1, runId: 'r1' })).toBe(true);
        expect(await store.claims.take(request('r2', { seen: 1 }))).toMatchObject({
          kind: 'taken',
          claim: { runStatus: 'waiting' },
        });
      }),
    );

    it(
      'of a person are held until they are settled',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1');
        const mine = await store.claims.take(request(null));
        expect(mine).toMatchObject({
          kind: 'claimed',
          claim: { runId: null, runStatus: null, by: 'a person' },
        });
        expect(await store.claims.take(request(null, { seen: 1 }))).toMatchObject({ kind: 'taken' });
        expect(await store.claims.take(request('r1', { seen: 1 }))).toMatchObject({ kind: 'taken' });
        expect(await store.claims.settle(settlement(1, { state: 'released' }))).toBe(true);
        expect(await store.claims.take(request('r1', { seen: 1 }))).toMatchObject({ kind: 'claimed' });
      }),
    );

    it.each(outcomes)('are settled as %s with their details, and can then be claimed again', async state => {
      await withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        await store.claims.take(request('r1'));
        const said = { reason: 'because', commit: 'c0ffee', branch: 'reprise/parked/fix-readme' };
        expect(await store.claims.settle(settlement(1, { state, ...said }))).toBe(true);
        const [claim] = await store.claims.list();
        expect(claim).toMatchObject({ token: 1, state, version: 'v1', runId: 'r1', at: time(5), ...said });
        expect(await store.claims.isHeld({ task: 'fix-readme', token: 1, runId: 'r1' })).toBe(false);

        const next = await store.claims.take(request('r2', { seen: 1, version: 'v2' }));
        const { reason: _, commit: __, branch: ___, ...kept } = { ...claim };
        const changes = {
          token: 2,
          state: 'held',
          version: 'v2',
          runId: 'r2',
          runStatus: 'running',
          by: 'worker of r2',
          at: time(1),
        };
        expect(next).toStrictEqual({ kind: 'claimed', claim: { ...kept, ...changes } });
        expect(await store.claims.list()).toStrictEqual([{ ...kept, ...changes }]);
      })();
    });

    it(
      'cannot be settled by a zombie that has lost them',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'zombie', 'heir');
        await store.claims.take(request('zombie'));
        await end(store, 'zombie', lease);
        await store.claims.take(request('heir', { seen: 1 }));
        const [before, revision] = [await store.claims.list(), await store.claims.revision()];

        expect(await store.claims.isHeld({ task: 'fix-readme', token: 1, runId: 'zombie' })).toBe(false);
        for (const state of outcomes) expect(await store.claims.settle(settlement(1, { state }))).toBe(false);
        expect(await store.claims.list()).toEqual(before);
        expect(await store.claims.revision()).toBe(revision);

        expect(await store.claims.isHeld({ task: 'fix-readme', token: 2, runId: 'heir' })).toBe(true);
        expect(await store.claims.settle(settlement(2))).toBe(true);
        expect(await store.claims.settle(settlement(1))).toBe(false);
      }),
    );

    it(
      'are settled idempotently: repeating the state succeeds, changing it does not',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1');
        await store.claims.take(request('r1'));
        await store.claims.settle(settlement(1, { commit: 'c0ffee' }));
        const before = await store.claims.list();
        expect(await store.claims.settle(settlement(1, { at: time(9) }))).toBe(true);
        expect(await store.claims.settle(settlement(1, { state: 'failed' }))).toBe(false);
        expect(await store.claims.settle(settlement(2))).toBe(false);
        expect(await store.claims.settle(settlement(1, { task: 'nope' }))).toBe(false);
        expect(await store.claims.list()).toEqual(before);
        expect(await store.claims.revision()).toBe(2);
      }),
    );

    it(
      'are settled without a token whatever their state',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1');
        const release = settlement(undefined, { state: 'released', reason: 'try again' });
        expect(await store.claims.settle(release)).toBe(false);
        expect(await store.claims.list()).toEqual([]);

        await store.claims.take(request('r1'));
        expect(await store.claims.settle(release)).toBe(true);
        expect(await store.claims.settle(settlement(1))).toBe(false);
        await store.claims.take(request('r1', { seen: 1 }));
        await store.claims.settle(settlement(2, { state: 'failed', reason: 'no', branch: 'b' }));
        expect(await store.claims.settle(release)).toBe(true);
        const [claim] = await store.claims.list();
        expect(claim).toMatchObject({ token: 2, state: 'released', reason: 'try again', runId: 'r1' });
        expect(claim).not.toHaveProperty('branch');
      }),
    );

    it(
      'have a revision that grows when the run of a held claim ends, and with no other change of a run',
      withStore(open, async ({ store }) => {
        expect(await store.claims.revision()).toBe(0);
        await withRuns(store, 'r1', 'r2', 'r3');
        await store.claims.take(request('r1'));
        await store.claims.take(request('r2', { task: 'settled' }));
        await store.claims.settle(settlement(1, { task: 'settled' }));
        const before = await store.claims.revision();
        expect(before).toBe(3);
        await store.renew('r1', lease, time(99_000));
        await end(store, 'r2', lease);
        await end(store, 'r3', lease);
        expect(await store.claims.revision()).toBe(before);
        await end(store, 'r1', lease);
        expect(await store.claims.revision()).toBeGreaterThan(before);
      }),
    );

    it(
      'are refused to a run that has ended or does not exist, and for a token that was never issued',
      withStore(open, async ({ store }) => {
        await withRuns(store, 'r1', 'r2');
        await store.claims.take(request('r1'));
        await end(store, 'r1', lease);
        await expect(store.claims.take(request('r1', { seen: 1 }))).rejects.toMatchObject({
          code: 'RUN_ENDED',
          message: 'run r1 has ended (failed) and cannot claim task fix-readme',
        });
        await expect(store.claims.take(request('nope'))).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
        await expect(store.claims.take(request('r2', { task: 'new', seen: 3 }))).rejects.toMatchObject({
          code: 'STORE_FAILED',
          hint: expect.stringContaining('list the tasks again'),
        });
        expect(await store.claims.list()).toHaveLength(1);
      }),
    );

    it(
      'are granted to exactly one of 8 concurrent claimants',
      withStore(open, async ({ store, reopen }) => {
        const runIds = Array.from({ length: 8 }, (_, index) => `racer-${index}`);
        await withRuns(store, ...runIds);
        const racers = await Promise.all(
          runIds.map(async runId => ({ runId, store: (await reopen?.()) ?? store })),
        );
        const results = await Promise.all(racers.map(racer => racer.store.claims.take(request(racer.runId))));
        await Promise.all(racers.filter(racer => racer.store !== store).map(racer => racer.store.close()));
        const winners = results.filter(result => result.kind === 'claimed');
        expect(winners).toHaveLength(1);
        expect(new Set(results.map(result => result.claim.runId)).size).toBe(1);
        expect(await store.claims.list()).toEqual(winners.map(({ claim }) => claim));
      }),
    );
  });
}
