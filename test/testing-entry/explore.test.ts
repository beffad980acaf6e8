import { describe, expect, expectTypeOf, it } from 'vitest';
import { type ExploreResult, explore, type Setup } from '../../src/testing.ts';

const tickets =
  (isSafe: boolean): Setup =>
  ({ effect, lane }) => {
    let seats = 1;
    const look = effect({ name: 'look', reads: ['seats'], perform: () => seats });
    const book = effect({ name: 'book', writes: ['seats'], perform: () => void seats-- });
    const take = effect({ name: 'take', writes: ['seats'], perform: () => void (seats > 0 && seats--) });
    const buy = async () => {
      if (isSafe) await take();
      else if ((await look()) > 0) await book();
    };
    lane('ann', buy);
    lane('bob', buy);
    return () => {
      if (seats < 0) throw new Error(`${1 - seats} tickets for 1 seat`);
    };
  };

describe('explore()', () => {
  it('finds a check that is outdated when the lane acts on it, and draws the schedule', async () => {
    const result = await explore(tickets(false));
    expect(String(result)).toMatchInlineSnapshot(`
      "invariant: 2 tickets for 1 seat

         ann                                    bob
      1  look                                   │
      2  │                                      look
      3  │                                      book
      4  book                                   │

      found by dpor after 2 schedules, 2 of them different
      schedule: calm: ann bob*2 ann"
    `);
    expect(result.failure).toMatchObject({ what: 'invariant', message: '2 tickets for 1 seat' });
  });

  it('reproduces a failure from its schedule, and reports a schedule that no longer fits', async () => {
    const { failure } = await explore(tickets(false));
    const schedule = failure?.schedule ?? '';
    for (let time = 0; time < 100; time++) {
      const again = await explore(tickets(false), { schedule });
      expect(again.failure).toMatchObject({ what: 'invariant', diagram: failure?.diagram });
    }
    const { failure: other } = await explore(tickets(true), { schedule });
    expect(other).toMatchObject({
      what: 'REPLAY_DIVERGED',
      message: 'the schedule has 4 moves, but the program ended after 2',
    });
  });

  it('reports an effect with an undeclared write', async () => {
    const result = await explore(({ effect, lane, watch }) => {
      let seats = 1;
      watch('seats', () => seats);
      const look = effect({ name: 'look', reads: ['seats'], perform: () => seats-- });
      lane('ann', async () => void (await look()));
      lane('bob', async () => void (await look()));
    });
    expect(result.failure).toMatchObject({
      what: 'undeclared write',
      message: 'look changed seats, but declares no writes',
    });
  });

  it('accepts writes that an effect declares by key or by prefix', async () => {
    const result = await explore(({ effect, lane, watch }) => {
      const seats = { a1: 'free', a2: 'free' };
      watch('seat:a1', () => seats.a1);
      watch('seat:a2', () => seats.a2);
      const to = (how: Partial<typeof seats>) => () => void Object.assign(seats, how);
      const take = effect({ name: 'take', writes: ['seat:a1'], perform: to({ a1: 'taken' }) });
      const close = effect({ name: 'close', writes: ['seat:'], perform: to({ a2: 'closed' }) });
      lane('ann', () => take());
      lane('bob', () => close());
    });
    expect(result).toMatchObject({ complete: true, classes: 2 });
    expect(result.failure).toBeUndefined();
  });

  it('performs each schedule twice, and reports the first difference', async () => {
    let rounds = 0;
    const setup: Setup = ({ effect, lane }) => {
      const isOdd = rounds++ % 2 === 1;
      const look = effect({ name: 'look', reads: ['seats'], perform: () => {} });
      const other = effect({ name: 'other', reads: ['seats'], perform: () => {} });
      lane('ann', async () => {
        await look();
        await (isOdd ? other() : look());
      });
    };
    expect((await explore(setup)).failure).toBeUndefined();
    rounds = 0;
    expect((await explore(setup, { twice: true })).failure).toMatchObject({
      what: 'not deterministic',
      message: 'before move 2 the first run could continue with ann look; the second with ann other',
    });
    const { failure, complete } = await explore(tickets(true), { twice: true });
    expect([failure, complete]).toEqual([undefined, true]);
  });

  it('reports a schedule with two different outcomes', async () => {
    let rounds = 0;
    const setup: Setup = ({ effect, lane }) => {
      const isOdd = rounds++ % 2 === 1;
      const look = effect({ name: 'look', reads: ['seats'], perform: () => {} });
      lane('ann', () => look());
      return () => expect(isOdd).toBe(false);
    };
    expect((await explore(setup, { twice: true })).failure).toMatchObject({
      what: 'not deterministic',
      message: 'the first run ended as passed after 1 move; the second as invariant after 1 move',
    });
  });

  it('reports that every order of correct code was played', async () => {
    const result = await explore(tickets(true));
    expect(result).toMatchObject({ complete: true, classes: 2, pairs: { seen: 1, inBothOrders: 1 } });
    expect(String(result)).toMatchInlineSnapshot(`
      "no failure: every order was played
      2 schedules, 2 of them different; 1 of 1 conflicting pairs in both orders"
    `);
  });

  it('finds a deadlock of locks that are taken in two orders', async () => {
    const { failure } = await explore(({ effect, lane }) => {
      const held = new Set<string>();
      const lock = effect<void, string>({
        name: 'lock',
        writes: name => [`lock ${name}`],
        when: name => !held.has(name),
        perform: name => void held.add(name),
      });
      const unlock = effect<void, string>({
        name: 'unlock',
        writes: name => [`lock ${name}`],
        perform: name => void held.delete(name),
      });
      const both = (first: string, second: string) => async () => {
        await lock(first);
        await lock(second);
        await unlock(second);
        await unlock(first);
      };
      lane('a', both('x', 'y'));
      lane('b', both('y', 'x'));
    });
    expect(failure).toMatchObject({
      what: 'deadlock',
      message: 'no lane can continue: a waits at lock; b waits at lock',
    });
  });

  it('finds a race that needs a stalled lane, because time is a separate lane', async () => {
    const { failure } = await explore(({ effect, lane, now, sleep }) => {
      let owner = '';
      const own = effect<void, string>({
        name: 'own',
        writes: ['owner'],
        perform: by => {
          owner = by;
        },
      });
      const write = effect<void, string>({
        name: 'write',
        reads: ['owner'],
        perform: by => {
          if (owner !== by) throw new Error(`${by} writes what ${owner} owns`);
        },
      });
      lane('a', async () => {
        await own('a');
        const began = await now();
        if ((await now()) - began < 30) await write('a');
      });
      lane('b', async () => {
        await sleep(31);
        await own('b');
      });
    });
    expect(failure?.message).toContain('a writes what b owns');
  });

  it('has the documented types', () => {
    expectTypeOf(explore).returns.resolves.toEqualTypeOf<ExploreResult>();
    const setup: Setup = ({ effect }) => {
      const add = effect<number, { readonly by: number }>({ name: 'add', perform: ({ by }) => by });
      expectTypeOf(add).parameter(0).toEqualTypeOf<{ readonly by: number }>();
      expectTypeOf(add).returns.resolves.toBeNumber();
      // @ts-expect-error an effect has a name
      effect({ perform: () => 1 });
    };
    expect(setup).toBeTypeOf('function');
  });
});
