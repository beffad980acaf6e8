import { describe, expect, it } from 'vitest';
import type { InboxMessage } from './port.ts';
import { completed, newRun, type OpenStore, takeover, time, withStore } from './samples.conformance.ts';

/** Messages from other processes, and the list of child processes. */
export function describeInboxAndProcesses(open: OpenStore): void {
  describe('the inbox', () => {
    const messages: InboxMessage[] = [
      { kind: 'approval', step: 'ok', choice: 'approve', by: 'zoë', comment: `it's "fine"\n` },
      { kind: 'signal', name: 'go', payload: { nested: [1, null, '\u0000'] } },
      { kind: 'signal', name: 'go', payload: null, by: 'cron' },
      { kind: 'cancel', reason: '' },
    ];

    it(
      'keeps messages of every kind in the order of their arrival',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        await store.createRun(newRun('r2'));
        for (const [index, message] of messages.entries()) await store.post('r1', message, time(index));
        const entries = await store.inbox('r1');
        expect(entries.map(({ at, message }) => ({ at, message }))).toStrictEqual(
          messages.map((message, index) => ({ at: time(index), message })),
        );
        expect(await store.inbox('r1')).toEqual(entries);
        expect(await store.inbox('r2')).toEqual([]);
      }),
    );

    it(
      'takes one of two answers that are based on the same state',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        const answer = (choice: string): InboxMessage => ({ kind: 'approval', step: 'ok', choice });
        const seen = { lastSeq: 1, lastEntry: 0 };
        const posted = await Promise.all([
          store.post('r1', answer('approve'), time(1), seen),
          store.post('r1', answer('reject'), time(1), seen),
        ]);
        expect(posted.toSorted()).toEqual([false, true]);
        const [entry, ...others] = await store.inbox('r1');
        expect(others).toEqual([]);
        const lastEntry = entry?.id ?? 0;
        const consumed = [lastEntry];
        await store.append({
          runId: 'r1',
          lease,
          expectedSeq: 1,
          at: time(2),
          events: [completed('a')],
          consumed,
        });
        expect(await store.post('r1', answer('reject'), time(3), seen)).toBe(false);
        expect(await store.post('r1', answer('reject'), time(3), { lastSeq: 2, lastEntry: 0 })).toBe(true);
      }),
    );

    it(
      'accepts messages with or without an owner, and never fences out the owner',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.post('r1', { kind: 'cancel', reason: 'a' }, time(1));
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(2), events: [completed('a')] });
        await store.release('r1', lease, 'completed');
        await store.post('r1', { kind: 'cancel', reason: 'b' }, time(3));
        expect(await store.inbox('r1')).toHaveLength(2);
      }),
    );

    it(
      'removes exactly the messages that an append consumes',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        for (const message of messages) await store.post('r1', message, time(1));
        const [first, second, third, fourth] = (await store.inbox('r1')).map(entry => entry.id);
        const batch = { runId: 'r1', lease, at: time(2) };
        const consumed = [first, third].filter(id => id !== undefined);
        await store.append({ ...batch, expectedSeq: 1, events: [completed('ok')], consumed });
        expect((await store.inbox('r1')).map(entry => entry.id)).toEqual([second, fourth]);
      }),
    );

    it(
      'lets the owner drop messages without an event',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.post('r1', { kind: 'cancel', reason: 'too late' }, time(1));
        const consumed = (await store.inbox('r1')).map(entry => entry.id);
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(2), events: [], consumed });
        expect(await store.inbox('r1')).toEqual([]);
        expect(await store.read('r1')).toHaveLength(1);
      }),
    );

    it(
      'never consumes the messages of another run',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.createRun(newRun('r2'));
        await store.post('r2', { kind: 'cancel', reason: 'mine' }, time(1));
        const consumed = (await store.inbox('r2')).map(entry => entry.id);
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(2), events: [], consumed });
        expect(await store.inbox('r2')).toHaveLength(1);
      }),
    );

    it(
      'never reuses the id of a consumed message',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.post('r1', { kind: 'cancel', reason: 'first' }, time(1));
        const consumed = (await store.inbox('r1')).map(entry => entry.id);
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(2), events: [], consumed });
        await store.post('r1', { kind: 'cancel', reason: 'second' }, time(3));
        const [entry] = await store.inbox('r1');
        expect(consumed).not.toContain(entry?.id);
      }),
    );

    it(
      'rejects messages to a run that does not exist',
      withStore(open, async ({ store }) => {
        const posted = store.post('nope', { kind: 'cancel', reason: 'x' }, time(1));
        await expect(posted).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
        expect(await store.inbox('nope')).toEqual([]);
      }),
    );
  });

  describe('child processes', () => {
    const first = { pid: 10, processStart: '100', step: 'fix' };
    const second = { pid: 11, processStart: '101', step: 'deploy/build' };

    it(
      'are kept until they are removed, even for the next owner',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.addProcess('r1', lease, second);
        await store.addProcess('r1', lease, first);
        await store.acquire(takeover('r1'));
        expect(await store.processes('r1')).toStrictEqual([first, second]);
        await store.removeProcess('r1', 10);
        await store.removeProcess('r1', 12);
        expect(await store.processes('r1')).toEqual([second]);
      }),
    );

    it(
      'replace an earlier process with the same pid, only within their run',
      withStore(open, async ({ store }) => {
        const one = await store.createRun(newRun('r1'));
        const two = await store.createRun(newRun('r2'));
        await store.addProcess('r1', one, first);
        await store.addProcess('r2', two, first);
        await store.addProcess('r1', one, { ...first, processStart: '200' });
        expect(await store.processes('r1')).toEqual([{ ...first, processStart: '200' }]);
        expect(await store.processes('r2')).toEqual([first]);
      }),
    );

    it(
      'are rejected for a run that does not exist',
      withStore(open, async ({ store }) => {
        const added = store.addProcess('nope', { epoch: 1, incarnation: 'ann' }, first);
        await expect(added).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
        expect(await store.processes('nope')).toEqual([]);
      }),
    );
  });
}
