import { describe, expect, it } from 'vitest';
import { createConductedWorld } from '../conductor/conductor.ts';
import type { World } from '../world.ts';
import { roundRobinScheduler } from './round-robin.ts';

function freeWorld() {
  let now = 0;
  const world = createConductedWorld({
    scheduler: roundRobinScheduler({
      advanceTo: epochMs => {
        now = Math.max(now, epochMs);
      },
    }),
  });
  return { world, now: () => now };
}

const noting = (world: World, notes: string[]) =>
  world.effect<string, void>({
    name: 'test.note',
    span: 'short',
    answer: 'inside',
    perform: text => void notes.push(text),
  });

const sleeping = (world: World) =>
  world.effect<number, void>({
    name: 'clock.sleep',
    span: 'long',
    answer: 'tape',
    perform: () => {
      throw new Error('a real sleep was performed');
    },
  });

describe('the round-robin scheduler', () => {
  it('lets lanes take turns in the same order every time', async () => {
    const play = async () => {
      const { world } = freeWorld();
      const notes: string[] = [];
      const note = noting(world, notes);
      const lane = (name: string, times: number) =>
        world.open(name, async () => {
          for (let time = 0; time < times; time++) await note(`${name}${time}`);
        });
      await Promise.all([lane('a', 3), lane('b', 2), lane('c', 1)]);
      await world.finish();
      return notes;
    };
    const first = await play();
    expect(first).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2']);
    expect(await play()).toEqual(first);
  });

  it('advances time only when all lanes sleep, to the earliest wake-up', async () => {
    const { world, now } = freeWorld();
    const notes: string[] = [];
    const note = noting(world, notes);
    const sleep = sleeping(world);
    const sleeper = (name: string, until: number) =>
      world.open(name, async () => {
        await sleep(until);
        await note(`${name} at ${now()}`);
      });
    await Promise.all([
      sleeper('late', 3_600_000),
      sleeper('soon', 1000),
      world.open('busy', async () => {
        for (const text of ['one', 'two', 'three']) await note(`${text} at ${now()}`);
      }),
    ]);
    expect(notes).toEqual(['one at 0', 'two at 0', 'three at 0', 'soon at 1000', 'late at 3600000']);
  });

  it('does not advance time for a cancelled sleep', async () => {
    const { world, now } = freeWorld();
    const sleep = sleeping(world);
    await world.open('run', async () => {
      const sleeper = world.fork(() => sleep(5000).catch(() => {}));
      await world.cancel([sleeper]);
      await world.join([sleeper]);
    });
    expect(now()).toBe(0);
  });

  it('reports a deadlock with the effect that each lane waits for', async () => {
    const { world } = freeWorld();
    const box = world.mailbox<string>('box');
    const opened = world.open('waiter', async () => {
      await world.open('inner', () => box.receiveAll());
    });
    await expect(opened).rejects.toThrow('no lane can continue: waiter/inner waits at mail.receive');
  });
});
