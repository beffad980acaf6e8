import { describe, expect, it } from 'vitest';
import { runTogether, Worker } from '../../src/git/processes.conformance.ts';
import { Lab, subjectsOnMain } from '../../src/git/test-support.ts';
import { rounds } from '../support/rounds.ts';

const landings = rounds(50);
const kills = rounds(30);

const landersOn = (lab: Lab, names: readonly string[], times: number) =>
  names.map(name => new Worker({ task: 'land', root: lab.root, name, rounds: times }));

/** Checks that main has a linear history without damaged objects. */
function expectLinearHistory(lab: Lab): void {
  expect(lab.git('rev-list', '--merges', 'main')).toBe('');
  expect(lab.git('status', '--porcelain')).toBe('');
  lab.git('fsck', '--strict');
}

describe('two processes', () => {
  it(`land ${landings} branches each in parallel, with a linear history and without losing a commit`, async () => {
    const lab = new Lab();
    const workers = landersOn(lab, ['a', 'b'], landings);
    await runTogether(workers);
    const ends = workers.flatMap(each => each.said<{ kind: string }>('landing'));
    expect(ends.map(each => each.kind)).toEqual(Array(2 * landings).fill('landed'));
    const committed = workers.flatMap(each => each.said<string>('committed'));
    expect(subjectsOnMain(lab).toSorted()).toEqual(['Begin', ...committed].toSorted());
    const files = committed.map(subject => subject.replace('Write ', ''));
    expect(lab.git('ls-tree', '--name-only', 'main').split('\n').toSorted()).toEqual(
      ['a.txt', ...files].toSorted(),
    );
    expect(lab.git('branch', '--list')).toBe('* main');
    expectLinearHistory(lab);
  });

  it('lose nothing when one of them is killed at any moment of a landing', async () => {
    const lab = new Lab();
    const committed: string[] = [];
    for (let round = 0; round < kills; round++) {
      const [victim, other] = landersOn(lab, [`victim${round}`, `other${round}`], 3);
      if (!victim || !other) throw new Error('two workers');
      await Promise.all([victim.printed(1), other.printed(1)]);
      victim.start();
      other.start();
      await victim.printed(1 + (round % 9));
      // Spreads the kills over the work between two lines of output.
      for (let turn = 0; turn < (round * 7919) % 400; turn++) await new Promise(setImmediate);
      await victim.kill();
      await other.done();
      committed.push(...victim.said<string>('committed'), ...other.said<string>('committed'));
    }
    const everywhere = new Set(lab.git('log', '--all', '--format=%s').split('\n'));
    expect(committed.filter(subject => !everywhere.has(subject))).toEqual([]);
    expectLinearHistory(lab);
  });
});
