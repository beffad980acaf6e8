import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cancelled, type Keys } from '../effect.ts';
import { turn } from '../test-support.ts';
import type { LaneRef, World } from '../world.ts';
import { type Program, record, replay } from './test-support.ts';

type Act =
  | { readonly kind: 'bump'; readonly key: string; readonly turns: number }
  | { readonly kind: 'peek'; readonly key: string; readonly turns: number }
  | { readonly kind: 'session'; readonly key: string; readonly turns: number }
  | { readonly kind: 'build'; readonly key: string; readonly turns: number }
  | { readonly kind: 'tidy'; readonly turns: number }
  | { readonly kind: 'send' }
  | { readonly kind: 'fork'; readonly acts: readonly Act[]; readonly thenCancel: boolean }
  | { readonly kind: 'inner'; readonly acts: readonly Act[] };

/** Number of sends, with or without cancellation: sends are short, and each act catches its cancellation. */
const sendsOf = (acts: readonly Act[]): number =>
  acts.reduce((sum, act) => sum + (act.kind === 'send' ? 1 : 'acts' in act ? sendsOf(act.acts) : 0), 0);

const pass = async (turns: number) => {
  for (let left = turns; left > 0; left--) await turn();
};

/** Shared counters behind keys, sessions that roll dice, and mail to one lane that waits for all of it. */
function makeEffects(world: World, random: () => number) {
  const counters = new Map<string, number>();
  const on = (keys: (key: string) => Keys) => (args: { readonly key: string }) => keys(args.key);
  return {
    mail: world.mailbox<number>('box'),
    bump: world.effect<{ key: string; turns: number; by: number }, number>({
      name: 'counter.bump',
      span: 'short',
      keys: on(key => ({ writes: [key] })),
      perform: ({ key, turns, by }) => {
        const before = counters.get(key) ?? 0;
        const write = () => {
          counters.set(key, before + by);
          return before + by;
        };
        return turns === 0 ? write() : pass(turns).then(write);
      },
    }),
    peek: world.effect<{ key: string; turns: number }, number>({
      name: 'counter.peek',
      span: 'short',
      keys: on(key => ({ reads: [key] })),
      perform: async ({ key, turns }) => {
        await pass(turns);
        return counters.get(key) ?? 0;
      },
    }),
    session: world.effect<{ key: string; turns: number }, { readonly roll: number }>({
      name: 'session.next',
      span: 'long',
      answer: 'tape',
      keys: on(key => ({ writes: [`wt:${key}`] })),
      perform: async ({ turns }) => {
        await pass(turns);
        return { roll: Math.floor(random() * 100) };
      },
    }),
    build: world.effect<{ key: string; turns: number }, number>({
      name: 'build.run',
      span: 'long',
      keys: on(key => ({ writes: [key], reads: ['base'] })),
      perform: async ({ key, turns }, { signal }) => {
        await pass(signal.aborted ? 0 : turns);
        const built = (counters.get(key) ?? 0) + 1000;
        counters.set(key, built);
        if (built % 3 === 0) throw new Error(`build ${built} failed`);
        return built;
      },
    }),
    tidy: world.effect<{ turns: number }, void>({
      name: 'build.tidy',
      span: 'long',
      cleanup: true,
      answer: 'inside',
      perform: ({ turns }) => pass(turns),
    }),
  };
}

const program =
  (lanes: readonly (readonly Act[])[], random: () => number): Program =>
  world => {
    const { mail, bump, peek, session, build, tidy } = makeEffects(world, random);
    const play = async (acts: readonly Act[], log: unknown[]): Promise<void> => {
      const refs: LaneRef[] = [];
      for (const [index, act] of acts.entries()) {
        try {
          switch (act.kind) {
            case 'bump':
              log.push(await bump({ ...act, by: 1 }));
              break;
            case 'peek':
              log.push(await peek(act));
              break;
            case 'session': {
              const { roll } = await session(act);
              log.push(roll);
              if (roll % 2 === 1) log.push(await peek({ key: act.key, turns: 0 }));
              break;
            }
            case 'build':
              log.push(await build(act));
              break;
            case 'tidy':
              await tidy(act);
              break;
            case 'send':
              await mail.send(log.length);
              break;
            case 'inner':
              await world.open(`inner#${index}`, () => play(act.acts, log));
              break;
            case 'fork': {
              const own: unknown[] = [];
              log.push(own);
              const forked = world.fork(() => play(act.acts, own));
              refs.push(forked);
              if (act.thenCancel) await world.cancel([forked]);
            }
          }
        } catch (error) {
          log.push(error instanceof Cancelled ? 'cancelled' : String(error));
        }
      }
      await world.join(refs);
    };
    const bodies = lanes.map((acts, index) => {
      const log: unknown[] = [];
      return [`step_${index}`, () => play(acts, log).then(() => log)] as const;
    });
    const receiver = async () => {
      const batches: number[] = [];
      for (let left = lanes.reduce((sum, acts) => sum + sendsOf(acts), 0); left > 0; ) {
        const batch = await mail.receiveAll();
        batches.push(batch.length);
        left -= batch.length;
      }
      return batches;
    };
    return { ...Object.fromEntries(bodies), engine: receiver };
  };

const key = fc.constantFrom('a', 'b', 'c');
const turns = fc.integer({ min: 0, max: 3 });
const { acts } = fc.letrec<{ acts: readonly Act[] }>(tie => ({
  acts: fc.array(
    fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.record({ kind: fc.constantFrom('bump', 'peek', 'session', 'build'), key, turns }),
      fc.constant({ kind: 'send' }),
      fc.record({ kind: fc.constant('tidy'), turns }),
      fc.record({ kind: fc.constant('fork'), acts: tie('acts'), thenCancel: fc.boolean() }),
      fc.record({ kind: fc.constant('inner'), acts: tie('acts') }),
    ) as fc.Arbitrary<Act>,
    { maxLength: 5, depthIdentifier: 'acts' },
  ),
}));

describe('a random recording', () => {
  it('replays identically every time, at every pace and in both fidelities', async () => {
    const all = fc.array(acts, { minLength: 1, maxLength: 4 });
    let [entries, mostInFlight, cancellations] = [0, 0, 0];
    await fc.assert(
      fc.asyncProperty(all, async lanes => {
        const recorded = await record(program(lanes, Math.random));
        const { recording } = recorded;
        entries += recording.entries.length;
        mostInFlight = Math.max(mostInFlight, recording.witness.mostInFlight);
        cancellations += recording.entries.filter(({ outcome }) => outcome?.kind === 'cancelled').length;
        const again = program(lanes, () => 0);
        for (const pace of ['turn', 'microtask'] as const)
          for (const fidelity of ['sessions', 'tape', 'sessions'] as const)
            expect(await replay(again, { recording, pace, fidelity })).toEqual(recorded);
      }),
      { numRuns: 40 },
    );
    expect(entries).toBeGreaterThan(400);
    expect(mostInFlight).toBeGreaterThan(2);
    expect(cancellations).toBeGreaterThan(5);
  });
});
