import { describe, it } from 'vitest';
import { raceForTasks } from '../../src/store/sqlite/claim-race.conformance.ts';
import { rounds } from '../support/rounds.ts';

const times = rounds(50);

describe('eight processes', () => {
  it(`race to claim 100 tasks, ${times} times: every task is claimed once each time`, async () => {
    await raceForTasks({ processes: 8, tasks: 100, rounds: times });
  });
});
