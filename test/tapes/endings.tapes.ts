import { it } from 'vitest';
import { ownCase } from './support/cases.ts';
import { recordAndReplay } from './support/promises.ts';

const rounds = 10;

it.each([
  ['fail-fast with a cancelled agent', 'endings/fail_fast'],
  ['a timeout', 'endings/timeout'],
  ['a Ctrl-C', 'endings/ctrl_c'],
])(`%s, recorded ${rounds} times, replays to the same history`, async (_, path) => {
  for (let round = 0; round < rounds; round++) await recordAndReplay(ownCase(path));
});
