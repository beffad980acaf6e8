import { describe, expect, it } from 'vitest';
import { topLane } from '../recording/recording.ts';
import { followStrictly, minimise } from './minimise.ts';
import { randomPolicy } from './policies.ts';
import { clockLane, switchesIn } from './schedule.ts';
import { type ExploredProgram, performing } from './test-support.ts';

/** Two lanes that take two locks in opposite order, after many conflicting moves, with heartbeats in between. */
const crossed: ExploredProgram = (world, { now }) => {
  const held = new Set<string>();
  const lock = (name: string) =>
    world.effect<void, void>({
      name: `lock ${name}`,
      span: 'short',
      keys: () => ({ writes: [name] }),
      enabled: () => !held.has(name),
      perform: () => void held.add(name),
    })();
  const unlock = (name: string) =>
    world.effect<void, void>({
      name: `unlock ${name}`,
      span: 'short',
      keys: () => ({ writes: [name] }),
      perform: () => void held.delete(name),
    })();
  const touch = world.effect<void, void>({
    name: 'touch',
    span: 'short',
    keys: () => ({ writes: ['board'] }),
    perform: () => {},
  });
  const beat = world.effect<string, void>({
    name: 'beat',
    span: 'short',
    upkeep: true,
    keys: by => ({ writes: [`life ${by}`] }),
    perform: () => {},
  });
  const sleep = world.effect<number, void>({ name: 'clock.sleep', span: 'long', perform: () => {} });
  const lane = (by: string, first: string, second: string) => async () => {
    const heartbeat = world.fork(async () => {
      for (;;) {
        await sleep(now() + 5);
        await beat(by);
      }
    });
    for (let left = 20; left > 0; left--) await touch();
    await lock(first);
    await lock(second);
    await unlock(second);
    await unlock(first);
    await world.cancel([heartbeat]);
    await world.join([heartbeat]).catch(() => {});
  };
  return { lanes: { a: lane('a', 'x', 'y'), b: lane('b', 'y', 'x') } };
};

async function firstDeadlock(isCalm: boolean) {
  const perform = performing(crossed);
  for (let seed = 1; ; seed++) {
    const performed = await perform({ ...randomPolicy(seed), isCalm });
    const { verdict } = performed;
    if (verdict.kind === 'failed' && verdict.what === 'deadlock') return { perform, performed };
  }
}

describe('a deadlock with heartbeats', () => {
  it.each([true, false])(
    'is minimized to two switches without ticks of the clock (calm: %s)',
    async isCalm => {
      const { perform, performed } = await firstDeadlock(isCalm);
      expect(switchesIn(performed.trace, topLane)).toBeGreaterThan(20);
      const { schedule, tries } = await minimise(perform, performed, { isCalm, ofLane: topLane });
      expect(switchesIn(schedule, topLane)).toBeLessThanOrEqual(2);
      expect(schedule.filter(({ lane }) => lane === clockLane)).toEqual([]);
      expect(tries).toBeLessThan(60);
      const again = await perform(followStrictly(schedule, { isCalm, goesOn: true }));
      expect(again.verdict).toMatchObject({ kind: 'failed', what: 'deadlock' });
    },
  );

  it('is not minimized if no time is left', async () => {
    const { perform, performed } = await firstDeadlock(true);
    const { schedule, tries } = await minimise(perform, performed, { isCalm: true, isOver: () => true });
    expect([schedule, tries]).toEqual([performed.trace, 0]);
  });
});
