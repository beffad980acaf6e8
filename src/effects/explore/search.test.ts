import { describe, expect, it } from 'vitest';
import { followStrictly, minimise } from './minimise.ts';
import { type Planted, workers } from './planted/test-support.ts';
import { switchesIn } from './schedule.ts';
import { search } from './search.ts';
import { performing } from './test-support.ts';

describe('a search over workers without a bug', () => {
  it('is complete for two and three workers', async () => {
    for (const names of [
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]) {
      const result = await search(performing(workers('nothing', names)), { schedules: 20_000 });
      expect(result).toMatchObject({ isComplete: true, usesTime: false, inconclusive: 0 });
      expect(result.failure).toBeUndefined();
    }
  });
});

describe('a search over workers with a planted bug', () => {
  it.each<Planted>(['claim', 'land', 'steal', 'deadlock', 'lease'])(
    'finds the bug "%s", which is minimized to few switches',
    async planted => {
      const perform = performing(workers(planted));
      const { failure } = await search(perform, { schedules: 20_000, seed: 7 });
      expect(failure).toBeDefined();
      if (!failure) return;
      const { isCalm } = failure;
      const { performed, tries } = await minimise(perform, failure.performed, { isCalm });
      expect(tries).toBeLessThanOrEqual(400);
      expect(switchesIn(performed.trace)).toBeLessThanOrEqual(12);
      const again = await perform(followStrictly(performed.trace, { isCalm }));
      expect(again.verdict).toEqual(performed.verdict);
    },
  );

  it('finds the bug with every policy', async () => {
    for (const policy of ['dpor', 'urw', 'pct', 'random'] as const) {
      const { failure } = await search(performing(workers('claim')), { policy, schedules: 500 });
      expect(failure?.performed.verdict).toMatchObject({ kind: 'failed' });
    }
  });
});

it('a search stops when its budget is used up, and is then incomplete', async () => {
  const result = await search(performing(workers('nothing')), { schedules: 6 });
  expect(result.isComplete).toBe(false);
  expect(result.schedules + result.cut).toBe(6);
  let moment = 0;
  const timed = await search(performing(workers('nothing')), { forMs: 10, now: () => moment++ });
  expect(timed.schedules + timed.cut).toBeLessThan(12);
});
