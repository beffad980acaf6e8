import { describe, expect, it } from 'vitest';
import { compiledRoom, Lab, runTogether, subjectsOnMain, Worker } from '../../src/git/test-support.ts';

const compiled = compiledRoom();

const landersOn = (lab: Lab, names: readonly string[], rounds: number) =>
  names.map(name => new Worker(compiled(), { task: 'land', root: lab.root, name, rounds }));

/** Every commit of main has the one before as its only parent, and is sound. */
function expectOneLine(lab: Lab): void {
  expect(lab.git('rev-list', '--merges', 'main')).toBe('');
  expect(lab.git('status', '--porcelain')).toBe('');
  lab.git('fsck', '--strict');
}

describe('two processes', () => {
  it('land at once, 50 times each: all of it lands, in one line, and nothing is lost', async () => {
    const lab = new Lab();
    const workers = landersOn(lab, ['a', 'b'], 50);
    await runTogether(workers);
    const landings = workers.flatMap(each => each.said<{ kind: string }>('landing'));
    expect(landings.map(each => each.kind)).toEqual(Array(100).fill('landed'));
    const committed = workers.flatMap(each => each.said<string>('committed'));
    expect(subjectsOnMain(lab).toSorted()).toEqual(['Begin', ...committed].toSorted());
    const files = committed.map(subject => subject.replace('Write ', ''));
    expect(lab.git('ls-tree', '--name-only', 'main').split('\n').toSorted()).toEqual(
      ['a.txt', ...files].toSorted(),
    );
    expect(lab.git('branch', '--list')).toBe('* main');
    expectOneLine(lab);
  });

  it('lose nothing when one of them is killed at any moment of a landing', async () => {
    const lab = new Lab();
    const committed: string[] = [];
    for (let round = 0; round < 30; round++) {
      const [victim, other] = landersOn(lab, [`victim${round}`, `other${round}`], 3);
      if (!victim || !other) throw new Error('two workers');
      await Promise.all([victim.printed(1), other.printed(1)]);
      victim.start();
      other.start();
      await victim.printed(1 + (round % 9));
      // Spread over what the process does between two lines.
      for (let turn = 0; turn < (round * 7919) % 400; turn++) await new Promise(setImmediate);
      await victim.kill();
      await other.done();
      committed.push(...victim.said<string>('committed'), ...other.said<string>('committed'));
    }
    const everywhere = new Set(lab.git('log', '--all', '--format=%s').split('\n'));
    expect(committed.filter(subject => !everywhere.has(subject))).toEqual([]);
    expectOneLine(lab);
  });
});
