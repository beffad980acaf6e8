import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../core/events.ts';
import type { RunStatus } from './port.ts';
import { completed, newRun, type OpenStore, time, withStore } from './samples.conformance.ts';

/** The list of runs. */
export function describeSummaries(open: OpenStore): void {
  describe('summaries', () => {
    const error = { code: 'STEP_FAILED', message: 'no' };
    const ends: [NewEvent, RunStatus][] = [
      [{ type: 'run.completed', data: { output: 1 } }, 'completed'],
      [{ type: 'run.failed', data: { error } }, 'failed'],
      [{ type: 'run.cancelled', data: { reason: 'enough' } }, 'cancelled'],
    ];

    it.each(ends)('follow $type, and run.resumed after it', async (event, status) => {
      await withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        const running = { status: 'running', startedAt: time(0), endedAt: null };
        expect(await store.list()).toMatchObject([running]);

        const batch = { runId: 'r1', lease };
        await store.append({ ...batch, expectedSeq: 1, at: time(5), events: [completed('a'), event] });
        expect(await store.list()).toMatchObject([{ status, startedAt: time(0), endedAt: time(5) }]);

        await store.append({
          ...batch,
          expectedSeq: 3,
          at: time(9),
          events: [{ type: 'run.resumed', data: {} }],
        });
        expect(await store.list()).toMatchObject([running]);
      })();
    });

    it(
      'follow the last `run.*` event of a batch, including the batch that creates the run',
      withStore(open, async ({ store }) => {
        const events: NewEvent[] = [
          { type: 'run.failed', data: { error } },
          { type: 'run.resumed', data: {} },
          { type: 'run.completed', data: { output: null } },
        ];
        await store.createRun(newRun('r1', { events }));
        expect(await store.list()).toMatchObject([{ status: 'completed', endedAt: time(0) }]);
      }),
    );

    it(
      'do not change with the events of steps',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        const before = await store.list();
        const events: NewEvent[] = [
          { type: 'step.failed', step: 'a', attempt: 1, data: { error } },
          { type: 'step.suspended', step: 'b', attempt: 1, data: { on: 'approval', wait: 0 } },
        ];
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(5), events });
        expect(await store.list()).toEqual(before);
      }),
    );

    it.each<RunStatus>(['running', 'waiting', 'suspended', 'completed', 'failed', 'cancelled'])(
      'keep the status %s with which a run is released',
      async status => {
        await withStore(open, async ({ store }) => {
          const lease = await store.createRun(newRun('r1'));
          await store.release('r1', lease, status);
          expect(await store.list()).toMatchObject([{ status, owner: null }]);
        })();
      },
    );

    it(
      'are listed newest first, by order of creation among equal times',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('b', { at: time(5) }));
        await store.createRun(newRun('z', { at: time(1) }));
        await store.createRun(newRun('c', { at: time(5) }));
        await store.createRun(newRun('a', { at: time(5) }));
        await store.createRun(newRun('y', { at: time(9), workflow: 'other' }));
        const ids = async (query?: Parameters<typeof store.list>[0]) =>
          (await store.list(query)).map(summary => summary.runId);
        expect(await ids()).toEqual(['y', 'a', 'c', 'b', 'z']);
        expect(await ids({ limit: 2 })).toEqual(['y', 'a']);
        expect(await ids({ workflow: 'fix', limit: 3 })).toEqual(['a', 'c', 'b']);
        expect(await ids({ workflow: 'none' })).toEqual([]);
        expect(await ids({ limit: 0 })).toEqual([]);
      }),
    );

    it(
      'can be filtered by status, in the same order',
      withStore(open, async ({ store }) => {
        const statuses: RunStatus[] = ['running', 'waiting', 'completed', 'failed', 'cancelled', 'running'];
        for (const [index, status] of statuses.entries()) {
          const workflow = index === 0 ? 'other' : 'fix';
          const lease = await store.createRun(newRun(`r${index}`, { at: time(index), workflow }));
          await store.release(`r${index}`, lease, status);
        }
        const ids = async (query: Parameters<typeof store.list>[0]) =>
          (await store.list(query)).map(summary => summary.runId);
        expect(await ids({ status: 'running' })).toEqual(['r5', 'r0']);
        expect(await ids({ status: ['waiting', 'running'] })).toEqual(['r5', 'r1', 'r0']);
        expect(await ids({ status: ['running', 'waiting'], workflow: 'fix' })).toEqual(['r5', 'r1']);
        expect(await ids({ status: ['running', 'waiting'], limit: 2 })).toEqual(['r5', 'r1']);
        expect(await ids({ status: 'failed', workflow: 'other' })).toEqual([]);
        expect(await ids({ status: [] })).toEqual([]);
      }),
    );

    it(
      'are found by a prefix of the id, taken literally',
      withStore(open, async ({ store }) => {
        const names = ['ab1', 'ab2', 'aB3', 'a%4', 'a_5', 'b', 'ab\u{10FFFF}x'];
        for (const [index, runId] of names.entries())
          await store.createRun(newRun(runId, { at: time(index) }));
        const ids = async (prefix: string) => (await store.find(prefix)).map(summary => summary.runId);
        expect(await ids('ab')).toEqual(['ab\u{10FFFF}x', 'ab2', 'ab1']);
        expect(await ids('ab1')).toEqual(['ab1']);
        expect(await ids('a%')).toEqual(['a%4']);
        expect(await ids('a_')).toEqual(['a_5']);
        expect(await ids('x')).toEqual([]);
        expect(await ids('')).toHaveLength(names.length);
      }),
    );

    it(
      'are limited to the ten newest with the prefix',
      withStore(open, async ({ store }) => {
        for (let index = 0; index < 12; index++) {
          await store.createRun(newRun(`r${String(index).padStart(2, '0')}`, { at: time(index) }));
        }
        const found = await store.find('r');
        expect(found.map(summary => summary.runId)).toEqual(
          Array.from({ length: 10 }, (_, index) => `r${String(11 - index).padStart(2, '0')}`),
        );
      }),
    );
  });
}
