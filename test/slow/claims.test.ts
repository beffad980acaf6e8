import { describe, it } from 'vitest';
import { raceForTasks } from '../../src/store/sqlite/claim-race.conformance.ts';
import { rounds } from '../support/rounds.ts';

const times = rounds(50);

describe('eight processes', () => {
  it(`claim each of 100 tasks once when they race for them, ${times} times`, async () => {
    await raceForTasks({ processes: 8, tasks: 100, rounds: times });
  });
});
