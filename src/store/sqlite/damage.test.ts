import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completed, newRun, started } from '../samples.conformance.ts';
import { temporaryStore } from './temporary.conformance.ts';

async function storeWithHistory(damage: string) {
  const { file, store } = await temporaryStore();
  await store.createRun(newRun('r1', { events: [started, completed('a'), completed('b'), completed('c')] }));
  const db = new DatabaseSync(file);
  onTestFinished(() => db.close());
  db.exec(damage);
  return store;
}

describe('a damaged store', () => {
  it.each([
    [
      'an unknown type',
      `UPDATE events SET type = 'step.exploded' WHERE seq = 3`,
      3,
      /unknown event type "step.exploded"/,
    ],
    [
      'a type of another event',
      `UPDATE events SET type = 'run.failed' WHERE seq = 2`,
      2,
      /malformed run.failed/,
    ],
    ['data that is not JSON', `UPDATE events SET data = '{"output":' WHERE seq = 4`, 4, /JSON/],
    [
      'data that only SQLite accepts as JSON',
      `UPDATE events SET data = '{output:1}' WHERE seq = 4`,
      4,
      /JSON/,
    ],
    ['data followed by another value', `UPDATE events SET data = '{"output":1},2' WHERE seq = 3`, 3, /JSON/],
    [
      'data that contains the next event too',
      `UPDATE events SET data = '{"output":1},4,"t","step.completed","x",null,1,{"output":2}' WHERE seq = 3`,
      3,
      /JSON/,
    ],
    [
      'data that is valid only together with the next',
      `UPDATE events SET data = iif(seq = 3, '{"output":[1', '2]}') WHERE seq IN (3, 4)`,
      3,
      /JSON/,
    ],
    ['data with a missing field', `UPDATE events SET data = '{}' WHERE seq = 4`, 4, /output/],
    ['an empty step', `UPDATE events SET step = '' WHERE seq = 2`, 2, /step/],
    ['a negative worker', `UPDATE events SET worker = -1 WHERE seq = 2`, 2, /worker/],
    ['an attempt of 0', `UPDATE events SET attempt = 0 WHERE seq = 2`, 2, /attempt/],
    ['an event missing at the start', 'DELETE FROM events WHERE seq = 1', 1, /missing/],
    ['an event missing in the middle', 'DELETE FROM events WHERE seq = 3', 3, /missing/],
  ])('with %s is rejected, naming the run and the event', async (_, damage, seq, reason) => {
    const store = await storeWithHistory(damage);
    const refused = store.read('r1');
    await expect(refused).rejects.toMatchObject({ code: 'HISTORY_INVALID', hint: expect.any(String) });
    await expect(refused).rejects.toThrow(`event ${seq} of run r1 `);
    await expect(refused).rejects.toThrow(reason);
  });

  it('is read with the fields that a newer version has added', async () => {
    const store = await storeWithHistory(
      `UPDATE events SET data = '{"output":1,"ofANewerVersion":2}' WHERE seq = 4`,
    );
    expect((await store.read('r1'))[3]).toMatchObject({ data: { output: 1, ofANewerVersion: 2 } });
  });

  it('is rejected at the first damaged event, even far into a long history', async () => {
    const { file, store } = await temporaryStore();
    const steps = Array.from({ length: 1200 }, (_, index) => completed(`s${index}`));
    await store.createRun(newRun('r1', { events: [started, ...steps] }));
    expect(await store.read('r1')).toHaveLength(1201);
    const db = new DatabaseSync(file);
    onTestFinished(() => db.close());
    db.exec(`UPDATE events SET data = '{' WHERE seq IN (777, 888)`);
    await expect(store.read('r1')).rejects.toThrow('event 777 of run r1 cannot be read');
    expect(await store.read('r1', 888)).toHaveLength(313);
  });

  it('is rejected only if the damage is after the requested sequence number', async () => {
    const store = await storeWithHistory('DELETE FROM events WHERE seq = 3');
    await expect(store.read('r1', 2)).rejects.toThrow('event 3 of run r1 is missing');
    expect(await store.read('r1', 3)).toHaveLength(1);
  });

  it.each([`'{"kind":"dance"}'`, `'{"kind":"cancel","reason":"x","shout":true}'`, `'nonsense'`])(
    'with the invalid inbox message %s is rejected',
    async message => {
      const store = await storeWithHistory(
        `INSERT INTO inbox (run_id, at, message) VALUES ('r1', 'now', ${message})`,
      );
      await expect(store.inbox('r1')).rejects.toMatchObject({
        code: 'HISTORY_INVALID',
        message: 'inbox entry 1 of run r1 cannot be read',
      });
    },
  );
});
