import { describe, expect, it } from 'vitest';
import { Cancelled } from './effect.ts';
import { createLiveWorld } from './live-world.ts';
import { gate, note, turn } from './test-support.ts';

describe('cancellation', () => {
  it('aborts a long effect, whose outcome is cancelled even if a result arrives', async () => {
    const world = createLiveWorld();
    const { pass, release, aborted } = gate(world);
    const seen: unknown[] = [];
    await world.open('run', async () => {
      const child = world.fork(async () => {
        await pass('work').then(
          value => seen.push(value),
          (error: unknown) => seen.push(error),
        );
      });
      await note(world, [])('begun');
      await world.cancel([child]);
      expect(aborted).toEqual(['work']);
      release('work', 'a result');
      await world.join([child]);
    });
    expect(seen).toEqual([expect.any(Cancelled)]);
  });

  it('runs short effects and cleanup of a cancelled lane, but begins no long effect', async () => {
    const world = createLiveWorld();
    const { pass, begun, release } = gate(world);
    const notes: string[] = [];
    const say = note(world, notes);
    const tidy = world.effect<string, void>({
      name: 'test.tidy',
      span: 'long',
      cleanup: true,
      perform: async text => {
        await turn();
        notes.push(text);
      },
    });
    await world.open('run', async () => {
      const child = world.fork(async () => {
        try {
          await pass('work');
        } catch {
          await say('short');
          await tidy('tidied');
          await pass('more').catch((error: unknown) => notes.push(String(error)));
        }
      });
      await say('begun');
      await world.cancel([child]);
      release('work');
      await world.join([child]);
    });
    expect(notes).toEqual(['begun', 'short', 'tidied', 'Cancelled: test.gate was cancelled']);
    expect(begun).toEqual(['work']);
  });

  it('reaches all lanes below, including those that a cancelled lane forks later', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const cancelled: string[] = [];
    const waitAt = (name: string) => async () => {
      await pass(name).catch(() => cancelled.push(name));
    };
    await world.open('run', async () => {
      const child = world.fork(async () => {
        const inner = world.fork(waitAt('inner'));
        await pass('own').catch(() => cancelled.push('own'));
        const late = world.fork(waitAt('late'));
        await world.join([inner, late]);
      });
      await note(world, [])('begun');
      await world.cancel([child]);
      release('inner');
      release('own');
      await world.join([child]);
    });
    expect(cancelled.sort()).toEqual(['inner', 'late', 'own']);
  });

  it('ends a wait for a message', async () => {
    const world = createLiveWorld();
    const box = world.mailbox<string>('box');
    const seen: unknown[] = [];
    await world.open('run', async () => {
      const child = world.fork(async () => {
        await box.receiveAll().catch((error: unknown) => seen.push(error));
      });
      await note(world, [])('waiting');
      await world.cancel([child]);
      await world.join([child]);
    });
    expect(seen).toEqual([expect.any(Cancelled)]);
  });

  it('does not change the outcome of an effect that has ended', async () => {
    const world = createLiveWorld();
    const { pass, release } = gate(world);
    const seen: string[] = [];
    await world.open('run', async () => {
      const child = world.fork(async () => {
        seen.push(await pass('work'));
      });
      await note(world, [])('begun');
      release('work', 'a result');
      await world.join([child]);
      await world.cancel([child]);
    });
    expect(seen).toEqual(['a result']);
  });
});
