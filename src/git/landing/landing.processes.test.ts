import { describe, expect, it } from 'vitest';
import { runTogether, Worker } from '../processes.conformance.ts';
import { Lab, subjectsOnMain } from '../test-support.ts';

describe('two processes that land in one repository', () => {
  const workersOn = (lab: Lab, rounds: number, names = ['a', 'b']) =>
    names.map(name => new Worker({ task: 'land', root: lab.root, name, rounds }));

  it('land all of their work in a linear history', async () => {
    const lab = new Lab();
    const workers = workersOn(lab, 6);
    await runTogether(workers);
    const landings = workers.flatMap(each => each.said<{ kind: string }>('landing'));
    expect(landings.map(each => each.kind)).toEqual(Array(12).fill('landed'));
    const committed = workers.flatMap(each => each.said<string>('committed'));
    expect(subjectsOnMain(lab).toSorted()).toEqual(['Begin', ...committed].toSorted());
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(lab.git('branch', '--list')).toBe('* main');
  });

  it('lose no commit and leave main intact if one of them is killed', async () => {
    const lab = new Lab();
    for (const [round, lines] of [2, 3, 4, 5].entries()) {
      const [victim, other] = workersOn(lab, 2, [`victim${round}`, `other${round}`]);
      if (!victim || !other) throw new Error('two workers');
      await Promise.all([victim.printed(1), other.printed(1)]);
      victim.start();
      other.start();
      await victim.printed(lines);
      await victim.kill();
      await other.done();
      const log = lab.git('log', '--all', '--format=%s').split('\n');
      for (const subject of [...victim.said<string>('committed'), ...other.said<string>('committed')]) {
        expect(log).toContain(subject);
      }
    }
    lab.git('fsck', '--strict');
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
  });
});
