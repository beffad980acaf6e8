import { describe, it } from 'vitest';
import { raceForTasks } from '../../src/store/sqlite/claim-race.conformance.ts';
import { compiledStore } from '../../src/store/sqlite/processes.conformance.ts';

const compiled = compiledStore();

describe('eight processes', () => {
  it('race to claim 100 tasks, 50 times: every task is claimed once each time', async () => {
    await raceForTasks({ compiled: compiled(), processes: 8, tasks: 100, rounds: 50 });
  });
});
