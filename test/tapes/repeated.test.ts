import { expect, it } from 'vitest';
import { rounds } from '../support/rounds.ts';
import { contended } from './support/cases.ts';
import { expectSame, recordAndReplay, underLoad } from './support/promises.ts';

const times = rounds(100);

it(`one recording replayed ${times} times, and as often on a busy machine, gives the same bytes`, async () => {
  const { lab, came } = await recordAndReplay(contended);
  const before = lab.files();
  const replayAll = async () => {
    for (let round = 0; round < times; round++) {
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
