import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createConductedWorld } from '../conductor/conductor.ts';
import { complaint, openAll, type Performed, type Program, record } from '../conductor/test-support.ts';
import type { Cancellation } from '../effect.ts';
import type { Recording } from '../recording/recording.ts';
import { createRecorder } from '../tracer.ts';
import type { World } from '../world.ts';
import { rerecordScheduler } from './rerecord.ts';

interface Surroundings {
  readonly dice?: number;
  readonly clock?: () => number;
}

const untilCancelled = (_: unknown, cancellation: Cancellation): Promise<void> =>
  new Promise(resolve => cancellation.onCancel(resolve));

/** A shared counter, dice that only the tape can answer on replay, and time. */
function effectsOf(world: World, { dice = 0, clock = () => 0 }: Surroundings = {}) {
  const counts = new Map<string, number>();
  const taken = new Set<string>();
  return {
    bump: world.effect<string, number>({
      name: 'counter.bump',
      span: 'short',
      keys: key => ({ writes: [key] }),
      perform: key => {
        counts.set(key, (counts.get(key) ?? 0) + 1);
        return counts.get(key) ?? 0;
      },
    }),
    roll: world.effect<void, number>({
      name: 'dice.roll',
      span: 'long',
      answer: 'tape',
      perform: async () => dice,
    }),
    now: world.effect<void, number>({ name: 'clock.now', span: 'short', answer: 'tape', perform: clock }),
    sleep: world.effect<number, void>({
      name: 'clock.sleep',
      span: 'long',
      answer: 'tape',
      perform: untilCancelled,
    }),
    message: world.effect<void, void>({
      name: 'inbox.next',
      span: 'long',
      answer: 'tape',
      perform: untilCancelled,
    }),
    takeSlot: world.effect<{ key: string; agent: string; places: number }, boolean>({
      name: 'agent.take-slot',
      span: 'long',
      perform: ({ key, places }) => {
        const wasFree = taken.size < places;
        taken.add(key);
        return wasFree;
      },
    }),
    releaseSlot: world.effect<{ readonly key: string }, void>({
      name: 'agent.release-slot',
      span: 'short',
      perform: ({ key }) => void taken.delete(key),
    }),
    script: world.effect<void, void>({
      name: 'shell.run',
      span: 'long',
      answer: 'inside',
      perform: untilCancelled,
    }),
  };
}

type Effects = ReturnType<typeof effectsOf>;

interface Bodies {
  readonly a: (effects: Effects, world: World) => Promise<unknown>;
  readonly b: (effects: Effects, world: World) => Promise<unknown>;
}

const programOf =
  ({ a, b }: Bodies, surroundings?: Surroundings): Program =>
  world => {
    const effects = effectsOf(world, surroundings);
    return { a: () => a(effects, world), b: () => b(effects, world) };
  };

/** Runs the program with `a` live. */
async function pin(
  recording: Recording,
  bodies: Bodies,
  { dice = 6, start = 0 } = {},
): Promise<Performed & { readonly now: number }> {
  const recorder = createRecorder();
  let now = start;
  const world = createConductedWorld({
    scheduler: rerecordScheduler({
      recording,
      live: 'a',
      time: {
        advanceTo: moment => {
          now = Math.max(now, moment);
        },
      },
      normalise: value => value,
      expand: value => value,
      rerecord: 'reprise test x --record',
      sourceRoot: resolve('.'),
    }),
    tracer: recorder.tracer,
  });
  const ends = await Promise.race([
    openAll(world, programOf(bodies, { dice, clock: () => now })),
    world.stopped.then(error => {
      throw error;
    }),
  ]);
  await world.finish();
  return { recording: recorder.recording(), ends, now };
}

const order = ({ entries }: Recording): readonly string[] => entries.map(({ lane, op }) => `${lane} ${op}`);

const withoutLines = (text: string): string => text.replace(/(\.test\.ts):\d+/g, '$1');

const twice = async ({ bump, roll }: Effects) => [await bump('shared'), await roll(), await bump('shared')];

describe('a live step among pinned ones', () => {
  const both: Bodies = { a: twice, b: twice };

  it('is performed in the recorded order, while the tape answers the others', async () => {
    const { recording, ends: before } = await record(programOf(both, { dice: 1 }));
    const { recording: rerecorded, ends } = await pin(recording, both);
    expect(order(rerecorded)).toEqual(order(recording));
    expect(before).toMatchObject({ a: [1, 1, 3], b: [2, 1, 4] });
    expect(ends).toEqual({ a: [1, 6, 3], b: [2, 1, 4] });
  });

  it('runs first once it calls a different effect', async () => {
    const own: Bodies = { a: async ({ roll, bump }) => [await roll(), await bump('own')], b: twice };
    const { recording } = await record(programOf(own));
    expect(order(recording)).toEqual([
      'a dice.roll.begin',
      'b counter.bump',
      'a dice.roll.end',
      'b dice.roll.begin',
      'a counter.bump',
      'b dice.roll.end',
      'b counter.bump',
    ]);
    const { recording: rerecorded } = await pin(recording, {
      a: async ({ roll, bump }) => [await roll(), await roll(), await bump('own')],
      b: twice,
    });
    expect(order(rerecorded)).toEqual([
      'a dice.roll.begin',
      'b counter.bump',
      'a dice.roll.end',
      'b dice.roll.begin',
      'a dice.roll.begin',
      'a dice.roll.end',
      'a counter.bump',
      'b dice.roll.end',
      'b counter.bump',
    ]);
  });

  it.each([0, 1, 4])('may end early, after %i of 5 recorded effects', async made => {
    const rolls =
      (count: number): Bodies['a'] =>
      async ({ roll }) => {
        for (let left = count; left > 0; left--) await roll();
      };
    const { recording } = await record(programOf({ a: rolls(5), b: twice }));
    const { ends, recording: rerecorded } = await pin(recording, { a: rolls(made), b: twice });
    expect(ends).toEqual({ a: undefined, b: [1, 0, 2] });
    expect(rerecorded.entries.filter(({ lane }) => lane === 'a')).toHaveLength(2 * made);
  });

  it('may fork lanes that are not in its recording', async () => {
    const own: Bodies = { a: async ({ roll }) => roll(), b: twice };
    const { recording } = await record(programOf(own));
    const { ends, recording: rerecorded } = await pin(recording, {
      a: async ({ roll, bump }, world) => {
        const lanes = [
          world.fork(async () => void (await bump('own'))),
          world.fork(async () => void (await roll())),
        ];
        await world.join(lanes);
        return roll();
      },
      b: twice,
    });
    expect(ends).toEqual({ a: 6, b: [1, 0, 2] });
    expect(order(rerecorded)).toContain('a/1 dice.roll.end');
  });

  it('waits for an agent slot until its holder releases it', async () => {
    const position = (key: string) => ({ key, agent: 'one', places: 1 });
    const b: Bodies['b'] = async ({ takeSlot, releaseSlot, roll }) => {
      const wasFree = await takeSlot(position('b'));
      for (let left = 3; left > 0; left--) await roll();
      await releaseSlot({ key: 'b' });
      return wasFree;
    };
    const bumps = async ({ bump }: Effects) => [await bump('own'), await bump('own')];
    const before: Bodies['a'] = async effects => [await bumps(effects), await effects.roll()];
    const { recording } = await record(programOf({ a: before, b }));
    const { ends, recording: rerecorded } = await pin(recording, {
      a: async effects => [await bumps(effects), await effects.takeSlot(position('a'))],
      b,
    });
    expect(ends).toEqual({ a: [[1, 2], true], b: true });
    const taking = order(rerecorded).filter(line => line.includes('slot'));
    expect(taking.slice(-3)).toEqual([
      'a agent.take-slot.begin',
      'b agent.release-slot',
      'a agent.take-slot.end',
    ]);
  });

  it('is refused if it makes a pinned step diverge', async () => {
    const { recording } = await record(programOf(both));
    const more: Bodies = {
      a: async ({ bump, roll }) => [
        await bump('shared'),
        await bump('shared'),
        await roll(),
        await bump('shared'),
      ],
      b: twice,
    };
    expect(withoutLines(await complaint(pin(recording, more)))).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: step b no longer matches its recording, because step a behaves differently
        a left the recorded order: lane a calls counter.bump where dice.roll.begin was recorded
        both use shared: counter.bump of lane a came first
      replay diverged: counter.bump of lane b ended differently than recorded
        at           step b, lane b, i 3 of 4, n 7 of 8
        expected     b counter.bump
        called from  src/effects/schedulers/rerecord.test.ts
        difference   result: recorded 4, now 5
        before that  0 a counter.bump
                     1 b counter.bump
                     2 a dice.roll.begin
                     3 b dice.roll.begin
                     4 a dice.roll.end
                     5 b dice.roll.end
                     6 a counter.bump
      record the whole case: reprise test x --record"
    `);
  });
});

describe('the time of a live step', () => {
  it('follows the tapes while the step keeps its recorded order', async () => {
    let ticks = 1000;
    const bodies: Bodies = { a: async ({ now }) => [await now(), await now()], b: async ({ now }) => now() };
    const { recording, ends: before } = await record(programOf(bodies, { clock: () => ticks++ }));
    const { ends } = await pin(recording, bodies);
    expect(ends).toEqual(before);
  });

  it('advances only when no other lane can continue', async () => {
    const { recording } = await record(programOf({ a: async ({ roll }) => roll(), b: twice }));
    const { recording: rerecorded, now } = await pin(recording, {
      a: async ({ sleep }) => sleep(5000),
      b: twice,
    });
    expect(order(rerecorded)[0]).toBe('a clock.sleep.begin');
    expect(order(rerecorded).at(-1)).toBe('a clock.sleep.end');
    expect(now).toBe(5000);
  });

  it('does not advance for a cancelled sleep', async () => {
    const { recording } = await record(programOf({ a: async () => {}, b: twice }));
    const { recording: rerecorded, now } = await pin(recording, {
      a: async ({ sleep, roll }, world) => {
        const sleeper = world.fork(() => sleep(5000));
        await roll();
        await world.cancel([sleeper]);
        await world.join([sleeper]).catch(() => {});
      },
      b: twice,
    });
    expect(rerecorded.entries.find(({ op }) => op === 'clock.sleep.end')?.outcome).toEqual({
      kind: 'cancelled',
    });
    expect(now).toBe(0);
  });
});

describe('a step that cannot be recorded alone', () => {
  it('waits for something from outside', async () => {
    const { recording } = await record(programOf({ a: async () => {}, b: twice }));
    const waiting: Bodies = { a: async ({ message }) => message(), b: twice };
    expect(await complaint(pin(recording, waiting))).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: step a cannot be recorded alone
        a left the recorded order: it continues after the end of its recording
      no lane can continue: a waits at inbox.next.end
      record the whole case: reprise test x --record"
    `);
  });

  it('interrupts work', async () => {
    const cut: Bodies = {
      a: async ({ script, roll }, world) => {
        const lane = world.fork(() => script());
        await roll();
        await world.cancel([lane]);
        await world.join([lane]).catch(() => {});
      },
      b: twice,
    };
    const { recording } = await record(programOf(cut));
    expect(await complaint(pin(recording, cut))).toMatchInlineSnapshot(`
      "REPLAY_DIVERGED: step a cannot be recorded alone: shell.run of lane a/0 is interrupted, and only a recording of the whole case shows how far it gets
      record the whole case: reprise test x --record"
    `);
  });
});
