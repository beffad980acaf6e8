import { expect, it } from 'vitest';
import { contended } from './support/cases.ts';
import { expectSame, recordAndReplay, underLoad } from './support/promises.ts';

const rounds = 100;

it(`one recording replayed ${rounds} times, and as often on a busy machine, gives the same bytes`, async () => {
  const { lab, came } = await recordAndReplay(contended);
  const before = lab.files();
  const replayAll = async () => {
    for (let round = 0; round < rounds; round++) {
      const again = await lab.replay();
      expect(again.failures).toEqual([]);
      expectSame(again, came);
      expect(again.snapshot).toBe(came.snapshot);
    }
  };
  await replayAll();
  await underLoad(replayAll);
  expect(lab.files()).toEqual(before);
});
