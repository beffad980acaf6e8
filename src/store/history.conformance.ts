import { describe, expect, it } from 'vitest';
import type { HistoryEvent, NewEvent } from '../core/events.ts';
import type { Json } from '../core/json.ts';
import { completed, newRun, type OpenStore, started, time, withStore } from './samples.conformance.ts';

/** Creating runs, appending to histories and reading them. */
export function describeHistories(open: OpenStore): void {
  describe('histories', () => {
    it(
      'creates a run with its first events, numbered from 1',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1', { events: [started, completed('plan')] }));
        expect(lease).toEqual({ epoch: 1, incarnation: 'ann' });
        expect(await store.read('r1')).toStrictEqual([
          { seq: 1, runId: 'r1', at: time(0), ...started },
          { seq: 2, runId: 'r1', at: time(0), ...completed('plan') },
        ]);
      }),
    );

    it(
      'keeps deeply nested data',
      withStore(open, async ({ store }) => {
        let output: Json = null;
        for (let depth = 0; depth < 1500; depth++) output = [output];
        await store.createRun(newRun('r1', { events: [started, completed('deep', output)] }));
        const [, deep] = await store.read('r1');
        expect(JSON.stringify(deep?.data)).toBe(JSON.stringify({ output }));
      }),
    );

    it(
      'refuses to create a run whose id is taken, and does not change the existing run',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1'));
        const again = newRun('r1', { workflow: 'other', events: [started, completed('x')] });
        await expect(store.createRun(again)).rejects.toMatchObject({ code: 'SEQUENCE_CONFLICT' });
        expect(await store.read('r1')).toHaveLength(1);
        expect(await store.list()).toMatchObject([{ runId: 'r1', workflow: 'fix' }]);
      }),
    );

    it(
      'numbers the events of batches without gaps and keeps all their fields',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        const first: NewEvent[] = [
          { type: 'step.started', step: 'fix', worker: 0, attempt: 2, data: { fingerprint: 'f' } },
          completed('plan', { files: ['a'] }),
        ];
        const second: NewEvent[] = [{ type: 'cancel.requested', data: { reason: 'enough' } }];
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(5), events: first });
        await store.append({ runId: 'r1', lease, expectedSeq: 3, at: time(6), events: second });
        expect(await store.read('r1')).toStrictEqual([
          { seq: 1, runId: 'r1', at: time(0), ...started },
          { seq: 2, runId: 'r1', at: time(5), ...first[0] },
          { seq: 3, runId: 'r1', at: time(5), ...first[1] },
          { seq: 4, runId: 'r1', at: time(6), ...second[0] },
        ]);
      }),
    );

    it(
      'reads the events after a sequence number',
      withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1', { events: [started, completed('a'), completed('b')] }));
        expect((await store.read('r1', 1)).map(event => event.seq)).toEqual([2, 3]);
        expect(await store.read('r1', 3)).toEqual([]);
      }),
    );

    it.each([0, 2, 99])('writes nothing when the expected sequence is %i instead of 1', async expectedSeq => {
      await withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        await store.post('r1', { kind: 'cancel', reason: 'stop' }, time(1));
        const consumed = (await store.inbox('r1')).map(entry => entry.id);
        const events: NewEvent[] = [completed('a'), { type: 'run.completed', data: { output: null } }];
        await expect(
          store.append({ runId: 'r1', lease, expectedSeq, at: time(1), events, consumed }),
        ).rejects.toMatchObject({ code: 'SEQUENCE_CONFLICT' });
        expect(await store.read('r1')).toHaveLength(1);
        expect(await store.inbox('r1')).toHaveLength(1);
        expect(await store.list()).toMatchObject([{ status: 'running', endedAt: null }]);
      })();
    });

    it(
      'writes nothing of a batch if one event cannot be serialized',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        const cycle: Record<string, unknown> = {};
        cycle['self'] = cycle;
        const events = [completed('a'), completed('b', cycle as Json)];
        await expect(
          store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events }),
        ).rejects.toBeInstanceOf(TypeError);
        expect(await store.read('r1')).toHaveLength(1);
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(2), events: [completed('a')] });
        expect(await store.read('r1')).toHaveLength(2);
      }),
    );

    it(
      'writes nothing of a batch if one event could not be read back',
      withStore(open, async ({ store }) => {
        const usage = { inputTokens: 1.5, outputTokens: 1, cachedTokens: 0, costUsd: null };
        const malformed: NewEvent = { type: 'session.ended', step: 'a', data: { outcome: 'ok', usage } };
        const refused = { code: 'HISTORY_INVALID' };
        await expect(store.createRun(newRun('r0', { events: [started, malformed] }))).rejects.toMatchObject(
          refused,
        );
        expect(await store.list()).toEqual([]);
        const lease = await store.createRun(newRun('r1'));
        const events = [completed('a'), malformed];
        await expect(
          store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events }),
        ).rejects.toMatchObject(refused);
        expect(await store.read('r1')).toHaveLength(1);
      }),
    );

    it(
      'throws RUN_NOT_FOUND for a run that was never created',
      withStore(open, async ({ store }) => {
        const unknown = { code: 'RUN_NOT_FOUND' };
        const lease = { epoch: 1, incarnation: 'ann' };
        await expect(store.read('nope')).rejects.toMatchObject(unknown);
        await expect(
          store.append({ runId: 'nope', lease, expectedSeq: 0, at: time(0), events: [started] }),
        ).rejects.toMatchObject(unknown);
      }),
    );

    it.each(hostilePayloads)('returns %s unchanged', async (_, payload) => {
      await withStore(open, async ({ store }) => {
        await store.createRun(newRun('r1', { events: [started, completed('a', payload)] }));
        expect((await store.read('r1'))[1]?.data).toStrictEqual({ output: payload });
      })();
    });

    it(
      'returns a separate copy to every reader',
      withStore(open, async ({ store }) => {
        const payload = { list: ['kept'] };
        await store.createRun(newRun('r1', { events: [completed('a', payload)] }));
        payload.list.push('after the write');
        const [event] = await store.read('r1');
        Object.assign(event?.data ?? {}, { output: 'after the read' });
        expect((await store.read('r1'))[0]?.data).toEqual({ output: { list: ['kept'] } });
      }),
    );

    it(
      'appends a batch of thousands of events',
      withStore(open, async ({ store }) => {
        const lease = await store.createRun(newRun('r1'));
        const events = Array.from({ length: 5000 }, (_, index) => completed('fix', index));
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events });
        const history: readonly HistoryEvent[] = await store.read('r1');
        expect(history.map(event => event.seq)).toEqual(
          Array.from({ length: 5001 }, (_, index) => index + 1),
        );
      }),
    );

    it(
      'keeps events after it is closed and opened again',
      withStore(open, async ({ store, reopen }) => {
        const lease = await store.createRun(newRun('r1'));
        if (!reopen) return;
        await store.append({ runId: 'r1', lease, expectedSeq: 1, at: time(1), events: [completed('a')] });
        await store.close();
        const later = await reopen();
        expect(await later.read('r1')).toHaveLength(2);
        await later.close();
      }),
    );
  });
}

const hostilePayloads: [string, Json][] = [
  ['unicode beyond the basic plane', 'héllo \u{1F600} 漢字 \u202E \uFEFF'],
  ['quotes, backslashes and SQL', `'; DROP TABLE events; -- " \\ \``],
  ['NUL and other control characters', '\u0000a\u0000\u0001\u001F\u007F\n\r\t\u2028'],
  ['a lone surrogate', 'broken \uD800 half'],
  ['extreme numbers', [Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, Number.MAX_VALUE, 1e21, 0.1]],
  [
    'keys of Object.prototype',
    JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":2,"":3}'),
  ],
  ['a megabyte of text', 'é\n"'.repeat(300_000)],
  ['deep nesting', Array.from({ length: 500 }).reduce<Json>(inner => [inner], 'core')],
  ['null', null],
  ['empty values', { a: [], b: {}, c: '', d: false, e: 0 }],
];
