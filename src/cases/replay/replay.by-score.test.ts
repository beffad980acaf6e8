import { describe, expect, it } from 'vitest';
import { openSession } from '../../agents/kinds.ts';
import { agentOf } from '../../agents/test-support.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { createLiveWorld } from '../../effects/live-world.ts';
import { replayScheduler } from '../../effects/schedulers/replay.ts';
import { allTracers, createRecorder } from '../../effects/tracer.ts';
import { agent, shell, workflow } from '../../workflow/builder/index.ts';
import { type Play, Stage } from './test-support.ts';

/** Records a run with its order, then replays both in another folder. */
async function recordAndReplay(play: () => Play) {
  const order = createRecorder();
  const first = new Stage();
  const recorded = await first.record(play(), {
    wrap: tracer => createLiveWorld({ tracer: allTracers([tracer, order.tracer]) }),
  });
  const recording = first.redactor.json(order.recording()) as ReturnType<typeof order.recording>;
  const second = new Stage();
  const { redactor } = second;
  const world = createConductedWorld({
    scheduler: replayScheduler({
      recording,
      fidelity: 'sessions',
      normalise: value => redactor.json(value),
      expand: value => redactor.expand(value),
    }),
  });
  const replayed = await second.replay(play(), recorded, { openSession }, world);
  await world.finish();
  return { recorded, replayed };
}

const agents = ['one', 'two'].map(name =>
  agentOf({
    name,
    kind: 'scripted',
    script: [
      { write: { path: `${name}.txt`, content: `${name}\n` } },
      { commit: `Write ${name}` },
      { say: name },
    ],
  }),
);

describe('a replay by score', () => {
  it('of two parallel agents gives the same history and commits', async () => {
    const steps = agents.map(({ name }) =>
      agent(name, { agent: name, prompt: `Write ${name}.`, checks: [`test -e ${name}.txt`] }),
    );
    const model = workflow('w', { steps }).model;
    const { recorded, replayed } = await recordAndReplay(() => ({ workflow: model, agents }));
    expect(recorded.played.status).toBe('completed');
    expect(replayed.history).toEqual(recorded.played.history);
    expect(replayed.tips).toEqual(recorded.played.tips);
    expect(replayed.result).toEqual(recorded.played.result);
    expect(replayed.vcr.leftOver()).toEqual([]);
    expect(replayed.vcr.applied().map(({ kind }) => kind)).toEqual(['exact', 'exact']);
  });

  it('cancels recorded sessions and scripts again, with the changes that they had made', async () => {
    const waiting = agentOf({
      name: 'slow',
      kind: 'scripted',
      script: [{ write: { path: 'half.txt', content: 'half\n' } }, { say: 'Halfway.' }, { sleep: 60_000 }],
    });
    const steps = [
      agent('slow', { agent: 'slow', prompt: 'Take your time.' }),
      shell('sleeper', { run: 'echo asleep; sleep 60' }),
    ];
    const model = workflow('w', { steps }).model;
    const cancelling = (): Play => {
      const interrupt = new AbortController();
      const seen = new Set<string>();
      return {
        workflow: model,
        agents: [waiting],
        start: { interrupt: interrupt.signal },
        observe: observation => {
          const text = JSON.stringify(observation);
          for (const word of ['Halfway.', 'asleep']) if (text.includes(`"${word}"`)) seen.add(word);
          if (seen.size === 2) interrupt.abort('enough');
        },
      };
    };
    const { recorded, replayed } = await recordAndReplay(cancelling);
    expect(recorded.played.status).toBe('cancelled');
    expect(recorded.recordings.map(({ file }) => file)).toEqual([
      'run.main.sleeper.0.cut0.jsonl',
      'slow.main.slow.0.cut0.jsonl',
    ]);
    expect(replayed.history).toEqual(recorded.played.history);
    expect(replayed.tips).toEqual(recorded.played.tips);
    expect(replayed.vcr.leftOver()).toEqual([]);
  });
});
