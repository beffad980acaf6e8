import { describe, expect, it } from 'vitest';
import { newRun, type OpenStore, owner, time, withStore } from './samples.conformance.ts';

const request = { task: 'a', seen: 0, version: 'v1', by: 'ann', at: time(1), runId: null };

/** One store with several projects. */
export function describeProjects(open: OpenStore): void {
  describe('projects', () => {
    it(
      'list their own runs, which every project can read by id',
      withStore(open, async ({ store, inProject }) => {
        const other = await inProject('packages/a');
        await store.createRun(newRun('r1'));
        const lease = await other.createRun(newRun('r2', { at: time(1) }));
        expect(await store.list()).toMatchObject([{ runId: 'r1' }]);
        expect(await other.list({ status: 'running' })).toMatchObject([{ runId: 'r2' }]);
        expect(await store.find('r')).toMatchObject([{ runId: 'r1' }]);
        expect(await store.read('r2')).toHaveLength(1);
        expect(await store.holdsRun('r2', lease)).toBe(true);
        expect((await store.list())[0]).not.toHaveProperty('project');
        await expect(store.createRun(newRun('r2'))).rejects.toMatchObject({ code: 'SEQUENCE_CONFLICT' });
        expect(await (await inProject(null)).list()).toMatchObject([
          { runId: 'r2', project: 'packages/a' },
          { runId: 'r1', project: '.' },
        ]);
      }),
    );

    it(
      'claim tasks of the same name independently',
      withStore(open, async ({ store, inProject }) => {
        const other = await inProject('packages/a');
        expect(await store.claims.take(request)).toMatchObject({ kind: 'claimed' });
        expect(await other.claims.take({ ...request, by: 'bob' })).toMatchObject({ kind: 'claimed' });
        expect(await (await inProject('packages/a')).claims.take(request)).toMatchObject({ kind: 'taken' });
        expect(await store.claims.settle({ task: 'a', state: 'landed', at: time(2) })).toBe(true);
        expect(await other.claims.list()).toMatchObject([{ task: 'a', state: 'held', by: 'bob' }]);
        expect(await store.claims.list()).toMatchObject([{ task: 'a', state: 'landed', by: 'ann' }]);
        const all = await (await inProject(null)).claims.list();
        expect(all.map(({ project, by }) => `${project} ${by}`).sort()).toEqual(['. ann', 'packages/a bob']);
      }),
    );

    it(
      'list their own workers',
      withStore(open, async ({ store, inProject }) => {
        const other = await inProject('packages/a');
        const worker = { ...owner('w1'), name: 'ann', branch: 'main', startedAt: time(0), beatAt: time(0) };
        await other.workers.put({ ...worker, state: 'working', costUsd: 0 });
        expect(await store.workers.list()).toEqual([]);
        expect(await other.workers.list()).toMatchObject([{ name: 'ann' }]);
        expect(await (await inProject(null)).workers.list()).toMatchObject([{ project: 'packages/a' }]);
      }),
    );
  });
}
