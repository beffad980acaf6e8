import { describe, expect, it } from 'vitest';
import type { Keys } from '../effect.ts';
import type { World } from '../world.ts';
import { followStrictly } from './minimise.ts';
import { nonPreemptivePolicy, randomPolicy } from './policies.ts';
import type { Policy } from './schedule.ts';
import { type ExploredProgram, movesOf, performing } from './test-support.ts';

const touching = (world: World, name: string, keys: Keys, done: () => unknown = () => undefined) =>
  world.effect<void, unknown>({ name, span: 'short', keys: () => keys, perform: done });

const order = (text: string) => text.split(' ').map(lane => ({ lane }));

const calm = (policy: Policy): Policy => ({ ...policy, isCalm: true });

describe('the exploring scheduler', () => {
  const counter: ExploredProgram = world => {
    let count = 0;
    const read = touching(world, 'read', { reads: ['count'] }, () => count);
    const write = world.effect<number, void>({
      name: 'write',
      span: 'short',
      keys: () => ({ writes: ['count'] }),
      perform: value => {
        count = value;
      },
    });
    const note = touching(world, 'note', {});
    const bump = async () => {
      await note();
      await write(Number(await read()) + 1);
      await note();
    };
    return { lanes: { a: bump, b: bump }, check: () => (count === 2 ? undefined : `count is ${count}`) };
  };

  it('follows the policy, and needs no decision for effects without shared keys', async () => {
    const one = await performing(counter)(followStrictly(order('a a b b')));
    expect(movesOf(one)).toBe('a read, a write, b read, b write');
    expect(one).toMatchObject({ entries: 8, verdict: { kind: 'passed' }, left: [] });
    const other = await performing(counter)(followStrictly(order('a b a b')));
    expect(other.verdict).toEqual({ kind: 'failed', what: 'invariant', message: 'count is 1' });
  });

  it('needs no decision for effects with only private keys', async () => {
    const { trace, entries } = await performing(counter, { isPrivate: key => key === 'count' })(
      nonPreemptivePolicy,
    );
    expect({ trace, entries }).toEqual({ trace: [], entries: 8 });
  });

  it('refuses a schedule that the program cannot follow', async () => {
    const { verdict } = await performing(counter)(
      followStrictly([
        { lane: 'a', op: 'read' },
        { lane: 'a', op: 'read' },
      ]),
    );
    expect(verdict).toEqual({
      kind: 'failed',
      what: 'REPLAY_DIVERGED',
      message: 'move 2 of the schedule is a read, but a is at write; possible moves: a write, b read',
    });
  });

  it('makes the same moves for the same seed', async () => {
    const perform = performing(counter);
    for (let seed = 0; seed < 20; seed++)
      expect(movesOf(await perform(randomPolicy(seed)))).toBe(movesOf(await perform(randomPolicy(seed))));
  });

  it('reports a deadlock with the effect that each lane waits for', async () => {
    const { verdict, left } = await performing(world => {
      const boxes = [world.mailbox('one'), world.mailbox('two')] as const;
      return { lanes: { a: () => boxes[0].receiveAll(), b: () => boxes[1].receiveAll() } };
    })(nonPreemptivePolicy);
    expect(verdict).toEqual({
      kind: 'failed',
      what: 'deadlock',
      message: 'no lane can continue: a waits at mail.receive; b waits at mail.receive',
    });
    expect(left.map(({ lane, op }) => `${lane} ${op}`)).toEqual(['a mail.receive', 'b mail.receive']);
  });

  it('stops lanes that spin', async () => {
    const { verdict, trace } = await performing(
      world => {
        const look = touching(world, 'look', { reads: ['flag'] });
        const spin = async () => {
          for (;;) await look();
        };
        return { lanes: { a: spin } };
      },
      { mostMoves: 100 },
    )(nonPreemptivePolicy);
    expect(trace).toHaveLength(100);
    expect(verdict).toEqual({
      kind: 'failed',
      what: 'livelock',
      message: 'the lanes keep running without finishing (100 moves): a is at look',
    });
  });
});

describe('a child lane', () => {
  it('makes its moves after its fork and before its join', async () => {
    const { trace } = await performing(world => {
      const write = touching(world, 'write', { writes: ['x'] });
      return {
        lanes: {
          run: async () => {
            await write();
            const child = world.fork(async () => {
              await write();
            });
            await world.join([child]);
            await world.open('inner', () => write());
            await write();
          },
        },
      };
    })(nonPreemptivePolicy);
    expect(trace.map(({ lane, op, after }) => ({ lane, op, after }))).toEqual([
      { lane: 'run', op: 'write', after: undefined },
      { lane: 'run/0', op: 'write', after: [0] },
      { lane: 'run/inner', op: 'write', after: [1] },
      { lane: 'run', op: 'write', after: [0, 1, 2] },
    ]);
  });

  it('can be cancelled between the begin and the end of its effect', async () => {
    const program: ExploredProgram = world => {
      const session = world.effect<void, void>({ name: 'session', span: 'long', perform: () => {} });
      const ends: string[] = [];
      return {
        lanes: {
          run: async () => {
            const child = world.fork(() =>
              session().then(
                () => void ends.push('done'),
                () => void ends.push('cancelled'),
              ),
            );
            await world.cancel([child]);
            await world.join([child]);
          },
        },
        check: () => ends.join(),
      };
    };
    const early = await performing(program)(followStrictly(order('run run/0').slice(0, 1)));
    expect(early.verdict).toMatchObject({ message: 'cancelled' });
    const late = await performing(program)(followStrictly(order('run/0 run')));
    expect(late.verdict).toMatchObject({ message: 'done' });
    expect(late.trace.map(({ op }) => op)).toEqual(['session.end', 'lane.cancel']);
  });
});

describe('a wait for something outside the process', () => {
  it('is one move, made when the wait is over, with the keys that it touches then', async () => {
    const program: ExploredProgram = world => {
      let isFree = false;
      const take = world.effect<void, void>({
        name: 'lock.take',
        span: 'long',
        awaits: { keys: () => ({ writes: ['lock'] }), isOver: () => isFree },
        perform: () => {},
      });
      const open = touching(world, 'lock.free', { writes: ['lock'] }, () => {
        isFree = true;
      });
      return { lanes: { a: () => take(), b: () => open() } };
    };
    const { trace, verdict } = await performing(program)(randomPolicy(1));
    expect(verdict.kind).toBe('passed');
    expect(trace).toEqual([
      { lane: 'b', op: 'lock.free', keys: { writes: ['lock'] } },
      { lane: 'a', op: 'lock.take.end', keys: { writes: ['lock'] } },
    ]);
  });
});

describe('virtual time', () => {
  const program: ExploredProgram = (world, time) => {
    const sleep = world.effect<number, void>({ name: 'clock.sleep', span: 'long', perform: () => {} });
    const now = world.effect<void, number>({ name: 'clock.now', span: 'short', perform: () => time.now() });
    const seen: string[] = [];
    const work = touching(world, 'work', { writes: ['x'] });
    return {
      lanes: {
        a: async () => {
          await sleep(100);
          seen.push(`a at ${await now()}`);
        },
        b: async () => {
          await work();
          seen.push(`b at ${await now()}`);
        },
      },
      check: () => seen.join(', '),
    };
  };

  it('advances in a calm schedule only when every lane waits', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const { verdict } = await performing(program)(calm(randomPolicy(seed)));
      expect(verdict).toMatchObject({ message: 'b at 0, a at 100' });
    }
  });

  it('may advance at any moment in other schedules', async () => {
    const seen = new Set<string>();
    for (let seed = 0; seed < 100; seed++) {
      const { verdict } = await performing(program)(randomPolicy(seed));
      if (verdict.kind === 'failed') seen.add(verdict.message);
    }
    expect([...seen].sort()).toEqual(['a at 100, b at 100', 'b at 0, a at 100', 'b at 100, a at 100']);
  });

  it('stops advancing for a lane that only polls and sleeps', async () => {
    const poll: ExploredProgram = (world, { now }) => {
      const sleep = world.effect<number, void>({ name: 'clock.sleep', span: 'long', perform: () => {} });
      const look = touching(world, 'look', { reads: ['flag'] }, () => false);
      return {
        lanes: {
          poller: async () => {
            while (!(await look())) await sleep(now() + 10);
          },
        },
      };
    };
    const { verdict } = await performing(poll)(calm(nonPreemptivePolicy));
    expect(verdict).toEqual({
      kind: 'failed',
      what: 'deadlock',
      message: 'no lane can continue: poller waits at clock.sleep.end',
    });
  });
});

describe('an outside event', () => {
  it('happens when the policy chooses it, and may open lanes', async () => {
    let crash: () => Promise<void> = async () => {};
    const notes: string[] = [];
    const program: ExploredProgram = world => {
      const write = touching(world, 'write', { writes: ['x'] }, () => notes.push('written'));
      crash = () => world.open('again', () => write().then(() => {}));
      return { lanes: { a: () => write() } };
    };
    let isOver = false;
    const { trace, verdict } = await performing(program, {
      outside: [
        {
          lane: 'crash',
          next: () =>
            isOver
              ? undefined
              : {
                  op: 'restart',
                  keys: {},
                  act: () => {
                    isOver = true;
                    void crash();
                  },
                },
        },
      ],
    })(followStrictly(order('crash again a')));
    expect(verdict.kind).toBe('passed');
    expect(trace.map(({ lane }) => lane)).toEqual(['crash', 'again', 'a']);
    expect(notes).toHaveLength(2);
  });

  it('does not resolve a deadlock if it is optional', async () => {
    const { verdict } = await performing(
      world => ({ lanes: { a: () => world.mailbox('box').receiveAll() } }),
      {
        outside: [
          { lane: 'crash', next: () => ({ op: 'crash', keys: {}, isOptional: true, act: () => {} }) },
        ],
      },
    )(nonPreemptivePolicy);
    expect(verdict).toMatchObject({ what: 'deadlock' });
  });
});
