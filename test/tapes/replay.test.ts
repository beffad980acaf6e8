import { describe, expect, it } from 'vitest';
import type { CaseManifest } from '../../src/cases/manifest/manifest.ts';
import { type Score, scoreFileName, writeScore } from '../../src/effects/recording/score-file.ts';
import { CaseLab } from './support/case-lab.ts';
import { alone, apart, contended, ownCase } from './support/cases.ts';
import { expectSame, recordAndReplay, scoreOf, underLoad } from './support/record-and-replay.ts';
import { withoutVolatileValues } from './support/volatile-values.ts';

describe('two runs that land on one main', () => {
  it('replay to the recorded result, and give the same snapshot whatever their order was', async () => {
    const snapshots = new Set<string | undefined>();
    for (let round = 0; round < 5; round++) {
      const { lab, replayed } = await recordAndReplay(contended);
      expect(scoreOf(lab).header.witness.mostOpen).toBe(2);
      snapshots.add(replayed.snapshot);
    }
    expect(snapshots.size).toBe(1);
    const [snapshot] = snapshots;
    expect(snapshot?.match(/^--- \w+ ---$/gm)).toEqual(['--- left ---', '--- right ---', '--- result ---']);
  });

  it('replay to the same bytes every time, even on a busy machine', async () => {
    const { lab, replayed } = await recordAndReplay(contended);
    const replayAgain = async (rounds: number) => {
      for (let round = 0; round < rounds; round++) {
        const again = await lab.replay();
        expect(again.failures).toEqual([]);
        expectSame(again, replayed);
        expect(again.snapshot).toBe(replayed.snapshot);
      }
    };
    await replayAgain(3);
    await underLoad(() => replayAgain(2));
  });
});

it.each([
  ['fail-fast with a cancelled agent', 'endings/fail_fast'],
  ['a timeout', 'endings/timeout'],
  ['a Ctrl-C', 'endings/ctrl_c'],
])('%s replays to the recorded history', async (_, path) => {
  for (let round = 0; round < 5; round++) await recordAndReplay(ownCase(path));
});

it('two recordings of a case differ only in ids, times and values derived from them', async () => {
  const content = async () => {
    const lab = new CaseLab(alone);
    expect((await lab.record()).failures).toEqual([]);
    return withoutVolatileValues(lab.files());
  };
  const first = await content();
  expect(Object.keys(first)).toEqual([
    'played__run.vcr',
    'sessions/writer.run.write.0.jsonl',
    'sessions/writer.run.write.0.patch',
  ]);
  expect(await content()).toEqual(first);
});

describe('a runner that performs the commands of a group one after another', () => {
  const oneAfterAnother = (manifest: CaseManifest): CaseManifest => ({
    ...manifest,
    steps: manifest.steps.map(step => ({ ...step, concurrentGroup: undefined })),
  });

  it('diverges from the recorded order', async () => {
    const lab = new CaseLab(apart);
    await lab.record();
    const { failures } = await lab.replay(oneAfterAnother(lab.manifest()));
    expect(failures.map(({ message }) => message.split('\n')[0])).toMatchInlineSnapshot(`
      [
        "replay diverged: lane right/engine#0 has not started, but it is its turn",
      ]
    `);
  });

  it('fails the concurrency witness even if the recorded order allows it', async () => {
    const lab = new CaseLab(apart);
    await lab.record();
    const score = scoreOf(lab);
    const write = (changed: Score) => lab.write(scoreFileName(lab.found.name), writeScore(changed));
    const entries = [...score.entries]
      .sort((a, b) => Number(isRight(a.lane)) - Number(isRight(b.lane)))
      .map((entry, n) => ({ ...entry, n }));
    write({ ...score, entries });
    const { failures } = await lab.replay(oneAfterAnother(lab.manifest()));
    expect(failures).toHaveLength(1);
    expect(failures[0]?.message).toMatch('less ran in parallel than was recorded');
    expect(failures[0]?.message).toMatch(/steps in parallel +recorded 2, now 1/);

    write({ entries, header: { ...score.header, witness: { mostOpen: 1, mostInFlight: 1, switches: 1 } } });
    expect((await lab.replay(oneAfterAnother(lab.manifest()))).failures).toEqual([]);
  });
});

const isRight = (lane: string): boolean => lane.startsWith('right/');
