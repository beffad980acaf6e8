import { createConductedWorld } from '../../src/effects/conductor/conductor.ts';
import { createLiveWorld } from '../../src/effects/live-world.ts';
import { replayScheduler } from '../../src/effects/schedulers/replay.ts';
import { createRecorder } from '../../src/effects/tracer.ts';
import { coldAndWarm, contend } from '../lib/contend.ts';

/** Three lanes with a session, a shared counter and mail, and one that receives: at most twelve entries per round. */
function program(world, rounds) {
  const mail = world.mailbox('engine');
  let counted = 0;
  const session = world.effect({
    name: 'session.next',
    span: 'long',
    answer: 'tape',
    perform: async ({ round }) => ({ said: round }),
  });
  const count = world.effect({
    name: 'counter.bump',
    span: 'short',
    keys: () => ({ writes: ['counter'] }),
    perform: () => ++counted,
  });
  const step = name => async () => {
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

const openAll = (world, rounds) =>
  Promise.all(Object.entries(program(world, rounds)).map(([name, body]) => world.open(name, body)));

/** Scheduler that grants the first lane by name and performs every effect. */
const firstByName = view => ({
  next: () => view.standings().find(({ kind, obstacle }) => kind === 'parked' && !obstacle).asked,
  performs: () => true,
  canEnd: () => true,
  answerOf: () => 'perform',
  judge: (_asked, _place, outcome) => outcome,
  laneEnded: () => {},
  finished: () => {},
});

async function record(rounds) {
  const { tracer, recording } = createRecorder();
  await openAll(createLiveWorld({ tracer }), rounds);
  return JSON.stringify(recording());
}

async function play(player, rounds) {
  let entries = 0;
  const tracer = {
    granted: () => {
      entries++;
    },
    settled: (_request, { phase }) => {
      if (phase === 'end') entries++;
    },
  };
  const world = createConductedWorld({ player, tracer });
  await openAll(world, rounds);
  await world.finish();
  return entries;
}

await contend({
  'in-memory': async ({ args: [rounds] }) => {
    let entries = 0;
    const times = await coldAndWarm(async () => {
      entries = await play(firstByName, Number(rounds));
    });
    return { ...times, entries };
  },
  'from-tape': async ({ args: [rounds] }) => {
    const text = await record(Number(rounds));
    const asIs = value => value;
    let entries = 0;
    const times = await coldAndWarm(async () => {
      const recording = JSON.parse(text);
      const player = replayScheduler({ recording, fidelity: 'sessions', normalise: asIs, expand: asIs });
      entries = await play(player, Number(rounds));
      if (entries !== recording.entries.length) throw new Error('the tape was not played to its end');
    });
    return { ...times, entries };
  },
});
