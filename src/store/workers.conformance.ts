import { describe, expect, it } from 'vitest';
import { type WorkerRecord, workerStates } from './runs.ts';
import { type OpenStore, owner, time, withStore } from './samples.conformance.ts';

const worker = (name: string, changes: Partial<WorkerRecord> = {}): WorkerRecord => ({
  ...owner(`${name}-1`),
  name,
  branch: 'main',
  startedAt: time(0),
  beatAt: time(0),
  state: 'starting',
  costUsd: 0,
  ...changes,
});

/** The registry of worker processes. */
export function describeWorkers(open: OpenStore): void {
  describe('workers', () => {
    it(
      'are listed by start time, then by name, with all their fields',
      withStore(open, async ({ store: { workers } }) => {
        const busy = worker('zoe', {
          state: 'working',
          task: 'fix-readme',
          agent: 'implement',
          runId: 'r1',
          note: 'editing README.md',
          costUsd: 0.25,
        });
        const unknownCost = worker('bob', { startedAt: time(5), costUsd: null });
        const others = [worker('ann', { startedAt: time(9) }), worker('amy', { startedAt: time(5) })];
        for (const each of [...others, unknownCost, busy]) await workers.put(each);
        expect(await workers.list()).toStrictEqual([busy, others[1], unknownCost, others[0]]);
      }),
    );

    it.each(workerStates)('can be in the state %s', async state => {
      await withStore(open, async ({ store: { workers } }) => {
        await workers.put(worker('ann', { state }));
        expect(await workers.list()).toEqual([worker('ann', { state })]);
      })();
    });

    it(
      'replace their previous record completely',
      withStore(open, async ({ store: { workers } }) => {
        await workers.put(worker('bob'));
        await workers.put(worker('ann', { state: 'working', task: 'a', agent: 'implement', runId: 'r1' }));
        const idle = worker('ann', { state: 'sleeping', beatAt: time(7), task: undefined, note: 'main' });
        await workers.put(idle);
        const { task: _, ...kept } = idle;
        expect(await workers.list()).toStrictEqual([kept, worker('bob')]);
      }),
    );

    it(
      'are distinguished by their incarnation, not by their name',
      withStore(open, async ({ store: { workers } }) => {
        await workers.put(worker('ann'));
        await workers.put(worker('ann', { incarnation: 'ann-2' }));
        await workers.remove('ann-1');
        await workers.remove('unknown');
        expect((await workers.list()).map(each => each.incarnation)).toEqual(['ann-2']);
      }),
    );

    it(
      'are visible to other processes',
      withStore(open, async ({ store, reopen }) => {
        await store.workers.put(worker('ann'));
        const other = (await reopen?.()) ?? store;
        expect(await other.workers.list()).toEqual([worker('ann')]);
        await other.workers.remove('ann-1');
        if (other !== store) await other.close();
        expect(await store.workers.list()).toEqual([]);
      }),
    );
  });
}
