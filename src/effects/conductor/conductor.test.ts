import { describe, expect, it } from 'vitest';
import { RepriseError } from '../../core/errors.ts';
import { Cancelled } from '../effect.ts';
import { createLiveWorld } from '../live-world.ts';
import type { Recording } from '../recording/recording.ts';
import { replayScheduler } from '../schedulers/replay.ts';
import { codeOf, note, turn } from '../test-support.ts';
import { allTracers, createRecorder, type Tracer } from '../tracer.ts';
import type { AbandonableWorld, World } from '../world.ts';
import { createConductedWorld } from './conductor.ts';
import type { SchedulerFactory } from './scheduler.ts';
import { type Program, record, replay } from './test-support.ts';

/** Grants the alphabetically first lane that can continue, and performs every effect. */
const firstByName: SchedulerFactory = view => ({
  next: () => {
    for (const status of view.statuses())
      if (status.kind === 'parked' && !status.obstacle) return status.pending;
    throw new RepriseError('DEADLOCK', 'no lane can continue');
  },
  performs: () => true,
  canEnd: () => true,
  answerOf: () => 'perform',
  judge: (_asked, _place, outcome) => outcome,
  laneEnded: () => {},
  finished: () => {},
});

const freely = (tracer?: Tracer) => createConductedWorld({ scheduler: firstByName, tracer });

describe('lanes of a conducted world', () => {
  it('run to their first effect when forked, then one at a time, and a join waits for them', async () => {
    const world = freely();
    const order: string[] = [];
    const say = note(world, order);
    const opened = await world.open('run', async () => {
      const children = ['a', 'b'].map(name =>
        world.fork(async () => {
          order.push(`${name} begins`);
          await say(`${name} says`);
          order.push(`${name} ends`);
        }),
      );
      order.push('forked');
      await world.join(children);
      return children.map(({ name }) => name);
    });
    await world.finish();
    expect(opened).toEqual(['run/0', 'run/1']);
    expect(order).toEqual(['a begins', 'b begins', 'forked', 'a says', 'a ends', 'b says', 'b ends']);
  });

  it('wait for an inner lane and continue when it has ended', async () => {
    const world = freely();
    const say = note(world, []);
    const inside = async () => {
      await say('inside');
      return 42;
    };
    const result = await world.open('run', async () => {
      const first = await world.open('engine#0', inside);
      await say('between');
      return first + (await world.open('engine#1', inside));
    });
    await world.finish();
    expect(result).toBe(84);
  });

  it('fail like lanes of a live world', async () => {
    const world = freely();
    const opened = world.open('run', async () => {
      const child = world.fork(async () => {
        throw new RepriseError('STORE_FAILED', 'disk is full');
      });
      await world.join([child]);
    });
    expect(await codeOf(opened)).toBe('STORE_FAILED: disk is full');
    await world.finish();
  });

  it('may await anything if they are root lanes, and no other lane continues meanwhile', async () => {
    const world = freely();
    const order: string[] = [];
    const say = note(world, order);
    await Promise.all([
      world.open('a', async () => {
        await say('a');
        for (let turns = 0; turns < 5; turns++) await turn();
        order.push('a is back');
        await say('a again');
      }),
      world.open('b', () => say('b')),
    ]);
    await world.finish();
    expect(order).toEqual(['a', 'a is back', 'a again', 'b']);
  });
});

const slow = (world: World) => world.effect<void, void>({ name: 'test.slow', span: 'long', perform: turn });

const misuses: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
  'lane run called test.note while test.note is still running; await it first, or use fork() instead of Promise.all':
    world => {
      const say = note(world, []);
      return Promise.all([say('a'), say('b')]);
    },
  'lane run ended without awaiting test.slow': async world => {
    void slow(world)();
  },
  'lane run ended before run/0, which it forked; join it first': async world => {
    world.fork(slow(world));
  },
  'lane run called test.note inside the effect test.nesting; effects do not nest': world => {
    const say = note(world, []);
    return world.effect<void, void>({ name: 'test.nesting', span: 'short', perform: () => say('in') })();
  },
  'a lane named run/engine is already open': world => {
    const say = note(world, []);
    return Promise.all([1, 2].map(() => world.open('engine', () => say('a'))));
  },
  "lane run/0 awaits a promise that is not an effect (a timer, I/O, another lane's promise) after test.note":
    async world => {
      const say = note(world, []);
      const child = world.fork(async () => {
        await say('a');
        await turn().then(turn);
      });
      await world.join([child]);
    },
};

describe('misuse in a conducted world', () => {
  it.each(Object.entries(misuses))('stops the world: %s', async (message, body) => {
    for (const pace of ['turn', 'microtask'] as const) {
      const world = createConductedWorld({ scheduler: firstByName, pace });
      const caught: unknown[] = [];
      const opened = world.open('run', () => body(world).catch((error: unknown) => caught.push(error)));
      const error = await world.stopped;
      expect(error).toMatchObject({ code: 'LANE_MISUSE', message });
      expect(await codeOf(opened)).toBe(`LANE_MISUSE: ${message}`);
      expect(await codeOf(world.finish())).toBe(`LANE_MISUSE: ${message}`);
      expect(caught).toEqual([]);
    }
  });

  it('has the same messages as in a live world', async () => {
    for (const [message, body] of Object.entries(misuses)) {
      const live = createLiveWorld({ refuseStrays: true });
      expect(await codeOf(live.open('run', () => body(live)))).toBe(`LANE_MISUSE: ${message}`);
    }
  });

  it('includes an effect outside any lane, and finish with an open lane', async () => {
    const outside = freely();
    expect(await codeOf(note(outside, [])('a'))).toBe('LANE_MISUSE: test.note was called outside any lane');
    expect(await codeOf(outside.open('run', async () => {}))).toContain('outside any lane');
    const early = freely();
    void early.open('run', () => new Promise(() => {})).catch(() => {});
    expect(await codeOf(early.finish())).toBe('LANE_MISUSE: finish was called while lane run is open');
  });

  it('cancels the effect in progress, and finish waits for its end', async () => {
    const world = freely();
    let isOver = false;
    const cancellable = world.effect<void, void>({
      name: 'test.cancellable',
      span: 'long',
      perform: async (_, cancellation) => {
        await new Promise<void>(resolve => cancellation.onCancel(resolve));
        await turn();
        isOver = true;
      },
    });
    const opened = codeOf(world.open('run', () => cancellable()));
    for (let turns = 0; turns < 3; turns++) await turn();
    await codeOf(note(world, [])('outside'));
    expect(isOver).toBe(false);
    expect(await codeOf(world.finish())).toContain('outside any lane');
    expect(isOver).toBe(true);
    expect(await opened).toContain('outside any lane');
  });
});

const after = (turns: number, signal: AbortSignal) =>
  new Promise<void>(resolve => {
    const count = (left: number) =>
      left === 0 || signal.aborted ? resolve() : setImmediate(count, left - 1);
    count(turns);
  });

/** Three steps and a keyboard. The first failed step, or Ctrl-C, cancels the other steps. */
const failFast =
  (turns: readonly number[], failing: number, interruptAfter: number): Program =>
  world => {
    const mail = world.mailbox<{ readonly from: string; readonly error?: string }>('engine');
    const shell = world.effect<{ step: number }, string>({
      name: 'shell.run',
      span: 'long',
      answer: 'tape',
      perform: async ({ step }, { signal }) => {
        await after(turns[step] ?? 0, signal);
        if (step === failing) throw new RepriseError('EXIT_NONZERO', 'exit 3');
        return `output ${Math.random()}`;
      },
    });
    const key = world.effect<void, void>({
      name: 'keyboard.interrupt',
      span: 'long',
      answer: 'tape',
      perform: (_, { signal }) => after(interruptAfter, signal),
    });
    const tidy = note(world, []);
    const step = (index: number) => async () => {
      try {
        await mail.send({ from: `step ${index}: ${await shell({ step: index })}` });
      } catch (error) {
        await tidy(`tidy ${index}`);
        await mail.send({
          from: `step ${index}`,
          error: error instanceof Cancelled ? 'cancelled' : String(error),
        });
      }
    };
    const keyboard = async () => {
      await key().then(
        () => mail.send({ from: 'keyboard', error: 'Ctrl-C' }),
        () => mail.send({ from: 'keyboard' }),
      );
    };
    const engine = async () => {
      const history: unknown[] = [];
      const lanes = [0, 1, 2].map(index => world.fork(step(index)));
      const watcher = world.fork(keyboard);
      let [left, isCancelled, hasKeyboardEnded] = [3, false, false];
      while (left > 0) {
        const batch = await mail.receiveAll();
        history.push(batch);
        left -= batch.filter(({ from }) => from.startsWith('step')).length;
        hasKeyboardEnded ||= batch.some(({ from }) => from === 'keyboard');
        if (!isCancelled && batch.some(({ error }) => error !== undefined)) {
          isCancelled = true;
          await world.cancel(lanes);
        }
      }
      await world.cancel([watcher]);
      await world.join([...lanes, watcher]);
      if (!hasKeyboardEnded) history.push(await mail.receiveAll());
      return history;
    };
    return { run: () => world.open('engine#0', engine) };
  };

/** A race between work and a timer: the first to end cancels the other. */
const timed =
  (workTurns: number, timerTurns: number): Program =>
  world => {
    const wait = world.effect<{ what: string; turns: number }, string>({
      name: 'test.wait',
      span: 'long',
      answer: 'tape',
      perform: async ({ what, turns }, { signal }) => {
        await after(turns, signal);
        return what;
      },
    });
    return {
      run: () =>
        world.open('engine#0', async () => {
          const mail = world.mailbox<string>('first');
          const racer = (what: string, turns: number) =>
            world.fork(() => wait({ what, turns }).then(mail.send, () => {}));
          const racers = [racer('work', workTurns), racer('timer', timerTurns)];
          const [first] = await mail.receiveAll();
          await world.cancel(racers);
          await world.join(racers);
          return first;
        }),
    };
  };

describe('cancelled work', () => {
  it.each([
    ['fail-fast', failFast([40, 5, 60], 1, 1000)],
    ['Ctrl-C', failFast([40, 50, 60], -1, 5)],
    ['no failure', failFast([3, 1, 2], -1, 1000)],
    ['work within its timeout', timed(2, 60)],
    ['work that exceeds its timeout', timed(60, 2)],
  ])('replays identically: %s', async (_, program) => {
    const recorded = await record(program);
    for (const pace of ['turn', 'microtask'] as const)
      expect(await replay(program, { recording: recorded.recording, pace })).toEqual(recorded);
  });

  it('is performed with an aborted signal if it had begun and is real', async () => {
    const states: string[] = [];
    const program: Program = world => {
      const build = world.effect<void, void>({
        name: 'test.build',
        span: 'long',
        perform: async (_, { signal }) => {
          states.push(signal.aborted ? 'aborted' : 'begun');
          await after(50, signal);
          states.push('wrote its files');
        },
      });
      const say = note(world, []);
      return {
        run: async () => {
          const child = world.fork(() => build());
          await say('begun');
          await world.cancel([child]);
          await world.join([child]).catch(() => {});
        },
      };
    };
    const recorded = await record(program);
    expect(states.splice(0)).toEqual(['begun', 'wrote its files']);
    expect(await replay(program, recorded)).toEqual(recorded);
    expect(states).toEqual(['aborted', 'wrote its files']);
  });
});

/** Abandons the lane `run` at the given moment, then opens `again`. */
async function killed(
  make: (tracer: Tracer) => AbandonableWorld,
  at: { readonly call: 'granted' | 'settled'; readonly n: number },
): Promise<{ readonly recording: Recording; readonly notes: readonly string[] }> {
  const { tracer, recording } = createRecorder();
  const notes: string[] = [];
  let resolveAbandoned: () => void = () => {};
  const abandoned = new Promise<void>(resolve => {
    resolveAbandoned = resolve;
  });
  const kill = (call: 'granted' | 'settled', n: number) => {
    if (call === at.call && n === at.n) void world.abandon('run').then(resolveAbandoned);
  };
  const world: AbandonableWorld = make(
    allTracers([
      tracer,
      { granted: (_, { n }) => kill('granted', n), settled: (_, { n }) => kill('settled', n) },
    ]),
  );
  const say = note(world, notes);
  const build = world.effect<string, void>({
    name: 'test.build',
    span: 'long',
    keys: () => ({ writes: ['folder'] }),
    perform: (_, { signal }) => after(20, signal),
  });
  void world.open('run', async () => {
    const builder = world.fork(() => build('one'));
    for (const text of ['a', 'b', 'c']) await say(text);
    await world.join([builder]);
  });
  await abandoned;
  await world.open('again', async () => {
    await say('again');
    await build('again');
  });
  return { recording: recording(), notes };
}

describe('an abandoned lane', () => {
  const moments = (['granted', 'settled'] as const).flatMap(call => [0, 1, 2, 3].map(n => ({ call, n })));
  // Entry 0 is the start of the build, which does not settle.
  const reached = moments.filter(({ call, n }) => call === 'granted' || n > 0);
  it.each(reached)('replays identically if it is abandoned when entry $n is $call', async at => {
    const live = await killed(tracer => createLiveWorld({ tracer }), at);
    const scheduler = replayScheduler({
      recording: live.recording,
      fidelity: 'sessions',
      normalise: value => value,
      expand: value => value,
    });
    let world: ReturnType<typeof createConductedWorld> | undefined;
    const again = await killed(tracer => {
      world = createConductedWorld({ scheduler, tracer });
      return world;
    }, at);
    await world?.finish();
    expect(again).toEqual(live);
  });

  it('stays at the effect that a crash interrupted, while the others continue', async () => {
    const program: Program = world => {
      const say = note(world, []);
      return { a: () => say('a'), b: () => say('b') };
    };
    const { recording } = await record(program);
    const cut = {
      ...recording,
      entries: recording.entries.map(({ outcome, ...entry }) =>
        entry.lane === 'a' ? entry : { ...entry, outcome },
      ),
    };
    const world = createConductedWorld({
      scheduler: replayScheduler({ recording: cut, fidelity: 'sessions', normalise: v => v, expand: v => v }),
    });
    const { a, b } = program(world);
    let hasEnded = false;
    void world.open('a', a ?? fail).finally(() => {
      hasEnded = true;
    });
    await world.open('b', b ?? fail);
    expect(hasEnded).toBe(false);
    await world.abandon('a');
    await world.finish();
    expect(hasEnded).toBe(false);
  });
});

const fail = (): never => {
  throw new Error('no such lane');
};

describe('answers on replay', () => {
  it('are expanded copies from the tape, and requests are normalized before the comparison', async () => {
    const seen: unknown[] = [];
    const program =
      (root: string, now: () => unknown): Program =>
      world => {
        const look = world.effect<{ path: string }, { path: string; list: number[] }>({
          name: 'test.look',
          span: 'short',
          answer: 'tape',
          keys: ({ path }) => ({ reads: [`file:${path}`] }),
          perform: ({ path }) => ({ path, list: [now() as number] }),
        });
        return {
          run: async () => {
            const found = await look({ path: `${root}/a` });
            seen.push(structuredClone(found));
            found.list.push(99);
          },
        };
      };
    const recorded = await record(program('<PATH:repo>', () => 7));
    const swap = (from: string, to: string) => (value: unknown) =>
      JSON.parse(JSON.stringify(value).replaceAll(from, to));
    const options = { normalise: swap('/new', '<PATH:repo>'), expand: swap('<PATH:repo>', '/new') };
    for (let times = 0; times < 2; times++)
      await replay(program('/new', fail), { ...options, recording: recorded.recording });
    expect(seen.slice(1)).toEqual(Array(2).fill({ path: '/new/a', list: [7] }));
  });

  it('ignore conditions that only real effects would change, with the fidelity tape', async () => {
    const program: Program = world => {
      let isOpen = false;
      const open = world.effect<void, void>({
        name: 'door.open',
        span: 'short',
        keys: () => ({ writes: ['door'] }),
        perform: () => {
          isOpen = true;
        },
      });
      const enter = world.effect<void, boolean>({
        name: 'door.enter',
        span: 'short',
        keys: () => ({ writes: ['door'] }),
        enabled: () => isOpen,
        perform: () => isOpen,
      });
      return { guest: () => enter(), host: () => open() };
    };
    const recorded = await record(program);
    expect(await replay(program, { recording: recorded.recording, fidelity: 'tape' })).toEqual(recorded);
  });
});
