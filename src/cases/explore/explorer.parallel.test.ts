import { expect, it } from 'vitest';
import type { Backend } from './backends.ts';
import { Backends, playAtOnce } from './explorer.ts';
import type { PerformedCase } from './perform.ts';

const performed = {} as PerformedCase;

/** Fake backends that count how many copies were prepared. */
function backends({ canBeMore = true } = {}): { all: Backends; prepared: () => number } {
  let prepared = 1;
  const backend = (): Backend =>
    ({
      ...(canBeMore
        ? {
            another: async () => {
              prepared++;
              return backend();
            },
          }
        : {}),
    }) as Backend;
  return { all: new Backends(backend()), prepared: () => prepared };
}

/** Plays six schedules, of which the later end sooner, and returns a log of what happened. */
async function playSix({ all }: ReturnType<typeof backends>): Promise<string[]> {
  const log: string[] = [];
  let begun = 0;
  const ends: (() => void)[] = [];
  const waiting = () => new Promise<void>(resolve => ends.push(resolve));
  const endAll = () => {
    for (const end of ends.splice(0).reverse()) end();
  };
  await playAtOnce<number>(all, {
    next: () => (begun < 6 ? begun++ : undefined),
    perform: async what => {
      log.push(`begin ${what}`);
      setImmediate(endAll);
      await waiting();
      log.push(`end ${what}`);
      return performed;
    },
    learn: what => void log.push(`learn ${what}`),
  });
  return log;
}

const only = (log: readonly string[], word: string) => log.filter(each => each.startsWith(word));

it('learns from schedules in the order in which they began, whichever ends first', async () => {
  const several = backends();
  several.all.prepare();
  several.all.prepare();
  expect(several.prepared()).toBe(3);
  const log = await playSix(several);
  expect(log.slice(0, 6)).toEqual(['begin 0', 'begin 1', 'begin 2', 'end 2', 'end 1', 'end 0']);
  expect(only(log, 'learn')).toEqual([0, 1, 2, 3, 4, 5].map(each => `learn ${each}`));
});

it('plays one schedule at a time on a backend that cannot be copied', async () => {
  const one = backends({ canBeMore: false });
  one.all.prepare();
  const log = await playSix(one);
  expect(log).toEqual([0, 1, 2, 3, 4, 5].flatMap(each => [`begin ${each}`, `end ${each}`, `learn ${each}`]));
});

it('waits for all running schedules before it rethrows the error of one', async () => {
  const { all } = backends();
  all.prepare();
  let left = 3;
  const playing = playAtOnce<number>(all, {
    next: underWay => (underWay.length < 3 ? underWay.length : undefined),
    perform: async what => {
      for (let turn = 0; turn <= what; turn++) await new Promise(setImmediate);
      left--;
      throw new Error(`from ${what}`);
    },
    learn: () => {},
  });
  await expect(playing).rejects.toThrow('from 0');
  expect(left).toBe(0);
});
