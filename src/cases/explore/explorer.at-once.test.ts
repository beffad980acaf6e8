import { expect, it } from 'vitest';
import type { Theatre } from './backends.ts';
import { playAtOnce, Theatres } from './explorer.ts';
import type { PerformedCase } from './perform.ts';

const performed = {} as PerformedCase;

/** Theatres that cost nothing: only which of them is taken is looked at. */
function theatres({ canBeMore = true } = {}): { all: Theatres; prepared: () => number } {
  let prepared = 1;
  const theatre = (): Theatre =>
    ({
      ...(canBeMore
        ? {
            another: async () => {
              prepared++;
              return theatre();
            },
          }
        : {}),
    }) as Theatre;
  return { all: new Theatres(theatre()), prepared: () => prepared };
}

/** Plays six, of which the later end the sooner, and says what happened. */
async function playSix({ all }: ReturnType<typeof theatres>): Promise<string[]> {
  const said: string[] = [];
  let begun = 0;
  const ends: (() => void)[] = [];
  const waiting = () => new Promise<void>(resolve => ends.push(resolve));
  const endAll = () => {
    for (const end of ends.splice(0).reverse()) end();
  };
  await playAtOnce<number>(all, {
    next: () => (begun < 6 ? begun++ : undefined),
    perform: async what => {
      said.push(`begin ${what}`);
      setImmediate(endAll);
      await waiting();
      said.push(`end ${what}`);
      return performed;
    },
    learn: what => void said.push(`learn ${what}`),
  });
  return said;
}

const only = (said: readonly string[], word: string) => said.filter(each => each.startsWith(word));

it('learns in the order in which they were begun, whichever ends first', async () => {
  const several = theatres();
  several.all.prepare();
  several.all.prepare();
  expect(several.prepared()).toBe(3);
  const said = await playSix(several);
  expect(said.slice(0, 6)).toEqual(['begin 0', 'begin 1', 'begin 2', 'end 2', 'end 1', 'end 0']);
  expect(only(said, 'learn')).toEqual([0, 1, 2, 3, 4, 5].map(each => `learn ${each}`));
});

it('plays one at a time where there is one theatre', async () => {
  const one = theatres({ canBeMore: false });
  one.all.prepare();
  const said = await playSix(one);
  expect(said).toEqual([0, 1, 2, 3, 4, 5].flatMap(each => [`begin ${each}`, `end ${each}`, `learn ${each}`]));
});

it('waits for all that are under way before it throws what one of them threw', async () => {
  const { all } = theatres();
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
