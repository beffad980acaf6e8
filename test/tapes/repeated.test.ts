import { expect, it } from 'vitest';
import { rounds } from '../support/rounds.ts';
import { contended } from './support/cases.ts';
import { expectSame, recordAndReplay, underLoad } from './support/record-and-replay.ts';

const times = rounds(100);

it(`one recording replays to the same bytes ${times} times, and ${times} times more on a busy machine`, async () => {
  const { lab, replayed } = await recordAndReplay(contended);
  const before = lab.files();
  const replayAll = async () => {
    for (let round = 0; round < times; round++) {
      const again = await lab.replay();
      expect(again.failures).toEqual([]);
      expectSame(again, replayed);
      expect(again.snapshot).toBe(replayed.snapshot);
    }
  };
  await replayAll();
  await underLoad(replayAll);
  expect(lab.files()).toEqual(before);
});
