import { describe, expect, it, onTestFinished } from 'vitest';
import type { HistoryEvent } from '../../core/events.ts';
import { newRun, owner, started, time } from '../samples.conformance.ts';
import { raceForTasks } from './claim-race.conformance.ts';
import { runTogether, StoreProcess, startTogether } from './processes.conformance.ts';
import { openSqliteStore } from './store.ts';
import { temporaryFile, temporaryStore } from './temporary.conformance.ts';

const writer = (task: string, file: string, name: string) => new StoreProcess('writer', task, file, name);

interface Output {
  readonly tag: string;
  readonly epoch?: number;
}

const outputsOf = (history: readonly HistoryEvent[]): Output[] =>
  history.map(({ data }) => ('output' in data ? (data.output as unknown as Output) : { tag: 'none' }));

describe('several processes on one SQLite store', () => {
  it('can all create and migrate it at the same time', async () => {
    for (let round = 0; round < 3; round++) {
      const file = await temporaryFile();
      const names = Array.from({ length: 6 }, (_, index) => `run-${index}`);
      await runTogether(names.map(name => writer('open', file, name)));
      const store = await openSqliteStore({ file });
      onTestFinished(() => store.close());
      expect((await store.list()).map(summary => summary.runId).toSorted()).toEqual(names);
    }
  });

  it('neither lose nor duplicate events, and have one owner per epoch', async () => {
    const { file, store } = await temporaryStore();
    await store.createRun(newRun('r1', { expiresAt: time(0) }));
    const writers = ['ann', 'bob', 'carl'].map(name => writer('own', file, name));
    await runTogether(writers);

    const epochs = writers.flatMap(each => each.values('acquired')) as number[];
    expect(epochs.toSorted((a, b) => a - b)).toEqual(epochs.map((_, index) => index + 2));
    expect(writers.flatMap(each => each.values('refused')).filter(code => code !== 'FENCED')).toEqual([]);

    const outputs = outputsOf(await store.read('r1', 1));
    const tags = outputs.filter((_, index) => index % 2 === 0).map(output => output.tag);
    expect(outputs.map(output => output.tag)).toEqual(tags.flatMap(tag => [tag, tag]));
    expect(tags.toSorted()).toEqual(writers.flatMap(each => each.values('appended')).toSorted());
    const written = outputs.map(output => output.epoch ?? 0);
    expect(written).toEqual(written.toSorted((a, b) => a - b));
  });

  it('post to the inbox without ever fencing out the owner', async () => {
    const { file, store } = await temporaryStore();
    const lease = await store.createRun(newRun('r1', { events: [started] }));
    const writers = ['ann', 'bob'].map(name => writer('post', file, name));
    await startTogether(writers);

    const received: string[] = [];
    let seq = 1;
    while (received.length < 200) {
      const entries = await store.inbox('r1');
      const payloads = entries.map(({ message }) =>
        message.kind === 'signal' ? message.payload : null,
      ) as string[];
      const events = payloads.map(
        payload => ({ type: 'signal.received', data: { name: 'go', payload } }) as const,
      );
      const consumed = entries.map(entry => entry.id);
      await store.append({ runId: 'r1', lease, expectedSeq: seq, at: time(1), events, consumed });
      seq += events.length;
      received.push(...payloads);
      await new Promise(setImmediate);
    }
    await Promise.all(writers.map(each => each.done()));
    expect(await store.inbox('r1')).toEqual([]);
    for (const name of ['ann', 'bob']) {
      const own = received.filter(payload => payload.startsWith(name));
      expect(own).toEqual(Array.from({ length: 100 }, (_, index) => `${name}.${index}`));
    }
    expect(await store.read('r1')).toHaveLength(201);
  });

  it('find every committed batch complete after a writer was killed', async () => {
    // No connection outlives a victim, so the next one must recover the write-ahead log.
    const file = await temporaryFile();
    await runTogether([writer('open', file, 'r1')]);
    const acknowledged: unknown[] = [];
    for (const [round, lines] of [2, 20, 75, 150].entries()) {
      const victim = writer('endless', file, `victim-${round}`);
      await startTogether([victim]);
      await victim.printed(lines);
      await victim.kill();
      acknowledged.push(...victim.values('appended'));
    }

    const later = await openSqliteStore({ file });
    onTestFinished(() => later.close());
    const history = await later.read('r1', 1);
    expect(history.map(event => event.step)).toEqual(history.map((_, index) => 'abc'[index % 3]));
    const all = outputsOf(history).map(output => output.tag);
    const tags = all.filter((_, index) => index % 3 === 0);
    expect(all).toEqual(tags.flatMap(tag => [tag, tag, tag]));
    expect(tags).toEqual(expect.arrayContaining(acknowledged));
    const next = await later.acquire({
      runId: 'r1',
      owner: owner('next'),
      now: time(99_999),
      expiresAt: time(99_999),
      provablyDead: (await later.list())[0]?.owner?.incarnation,
    });
    expect(next).toMatchObject({ kind: 'acquired', lease: { epoch: 6 } });
  });

  it('claim every task exactly once when all of them try to claim all tasks', async () => {
    await raceForTasks({ processes: 3, tasks: 20, rounds: 4 });
  });
});
