import { expect, it } from 'vitest';
import { rounds } from '../support/rounds.ts';
import { contended } from './support/cases.ts';
import { orderOf, recordAndReplay, scoreOf } from './support/record-and-replay.ts';

const times = rounds(100);

it(`${times} recordings of two runs that land on one main replay to the same commit, each in its own order`, async () => {
  const orders = new Set<string>();
  let same = 0;
  for (let round = 0; round < times; round++) {
    const { lab } = await recordAndReplay(contended);
    expect(scoreOf(lab).header.witness.mostOpen).toBe(2);
    orders.add(orderOf(lab));
    same += 1;
  }
  expect(same).toBe(times);
  // The test proves nothing if all recordings have the same order.
  expect(orders.size).toBeGreaterThan(1);
});
