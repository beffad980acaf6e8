import { it } from 'vitest';
import { rounds } from '../support/rounds.ts';
import { ownCase } from './support/cases.ts';
import { recordAndReplay } from './support/record-and-replay.ts';

const times = rounds(10);

it.each([
  ['fail-fast with a cancelled agent', 'endings/fail_fast'],
  ['a timeout', 'endings/timeout'],
  ['a Ctrl-C', 'endings/ctrl_c'],
])(`%s, recorded ${times} times, replays to the same history`, async (_, path) => {
  for (let round = 0; round < times; round++) await recordAndReplay(ownCase(path));
});
