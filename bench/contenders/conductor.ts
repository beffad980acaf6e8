import { createConductedWorld } from '../../src/effects/conductor/conductor.ts';
import type { SchedulerFactory } from '../../src/effects/conductor/scheduler.ts';
import { createLiveWorld } from '../../src/effects/live-world.ts';
import type { Recording } from '../../src/effects/recording/recording.ts';
import { replayScheduler } from '../../src/effects/schedulers/replay.ts';
import { createRecorder, type Tracer } from '../../src/effects/tracer.ts';
import type { World } from '../../src/effects/world.ts';
import { coldAndWarm, contend } from '../lib/contend.ts';

/** Three lanes with a session, a shared counter and mail, and one that receives: at most twelve entries per round. */
function program(world: World, rounds: number) {
  const mail = world.mailbox('engine');
  let counted = 0;
  const session = world.effect({
    name: 'session.next',
    span: 'long',
    answer: 'tape',
    perform: async ({ round }: { readonly name: string; readonly round: number }) => ({ said: round }),
  });
  const count = world.effect<void, number>({
    name: 'counter.bump',
    span: 'short',
    keys: () => ({ writes: ['counter'] }),
    perform: () => ++counted,
  });
  const step = (name: string) => async () => {
    for (let round = 0; round < rounds; round++) {
      await session({ name, round });
      await count();
      await mail.send({ name, round });
    }
  };
  const engine = async () => {
    for (let left = 3 * rounds; left > 0; ) left -= (await mail.receiveAll()).length;
  };
  return { a: step('a'), b: step('b'), c: step('c'), engine };
}

const openAll = (world: World, rounds: number) =>
  Promise.all(Object.entries(program(world, rounds)).map(([name, body]) => world.open(name, body)));

/** Scheduler that grants the first lane by name and performs every effect. */
const firstByName: SchedulerFactory = view => ({
  next: () => {
    for (const status of view.statuses())
      if (status.kind === 'parked' && !status.obstacle) return status.pending;
    throw new Error('every lane is blocked');
  },
  performs: () => true,
  canEnd: () => true,
  answerOf: () => 'perform',
  judge: (_pending, _position, outcome) => outcome,
  laneEnded: () => {},
  finished: () => {},
});

async function record(rounds: number) {
  const { tracer, recording } = createRecorder();
  await openAll(createLiveWorld({ tracer }), rounds);
  return JSON.stringify(recording());
}

async function play(scheduler: SchedulerFactory, rounds: number) {
  let entries = 0;
  const tracer: Tracer = {
    granted: () => {
      entries++;
    },
    settled: (_request, { phase }) => {
      if (phase === 'end') entries++;
    },
  };
  const world = createConductedWorld({ scheduler, tracer });
  await openAll(world, rounds);
  await world.finish();
  return entries;
}

export const methods = {
  'in-memory': async (_folder: string, rounds: number) => {
    let entries = 0;
    const times = await coldAndWarm(async () => {
      entries = await play(firstByName, rounds);
    });
    return { ...times, entries };
  },
  'from-tape': async (_folder: string, rounds: number) => {
    const text = await record(rounds);
    const asIs = (value: unknown) => value;
    let entries = 0;
    const times = await coldAndWarm(async () => {
      const recording: Recording = JSON.parse(text);
      const scheduler = replayScheduler({ recording, fidelity: 'sessions', normalise: asIs, expand: asIs });
      entries = await play(scheduler, rounds);
      if (entries !== recording.entries.length) throw new Error('the tape was not played to its end');
    });
    return { ...times, entries };
  },
};

await contend(methods);
