import { describe, expect, it } from 'vitest';
import { compiledRoom, Lab, runTogether, Worker } from '../../src/git/test-support.ts';
import { listWorkspaces } from '../../src/git/workspaces.ts';

const compiled = compiledRoom();

const workersOn = (lab: Lab, { task, names, rounds }: { task: string; names: string[]; rounds: number }) =>
  names.map(name => new Worker(compiled(), { task, root: lab.root, name, rounds }));

describe('two processes', () => {
  it('make and remove 24 workspaces at once, 20 times, without a failure', async () => {
    const lab = new Lab();
    const before = lab.fingerprint();
    for (let round = 0; round < 20; round++) {
      const workers = workersOn(lab, { task: 'worktrees', names: [`a${round}`, `b${round}`], rounds: 12 });
      await Promise.all(workers.map(each => each.printed(1)));
      for (const each of workers) each.start();
      await Promise.all(workers.map(each => each.printed(2)));
      expect(listWorkspaces(await lab.open())).toHaveLength(24);
      for (const each of workers) each.start();
      await Promise.all(workers.map(each => each.done()));
    }
    expect(lab.git('worktree', 'list').split('\n')).toHaveLength(1);
    expect(lab.git('branch', '--list')).toBe('* main');
    expect(lab.fingerprint()).toEqual(before);
  });

  it('land at once, 50 times each: all of it lands, in one line', async () => {
    const lab = new Lab();
    const workers = workersOn(lab, { task: 'land', names: ['a', 'b'], rounds: 50 });
    await runTogether(workers);
    const landings = workers.flatMap(each => each.said<{ kind: string }>('landing'));
    expect(landings.map(each => each.kind)).toEqual(Array(100).fill('landed'));
    const committed = workers.flatMap(each => each.said<string>('committed'));
    const subjects = lab.git('log', '--format=%s', 'main').split('\n');
    expect(subjects.toSorted()).toEqual(['Begin', ...committed].toSorted());
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
    expect(lab.git('status', '--porcelain')).toBe('');
  });

  it('lose nothing when one of them is killed at any moment of a landing', async () => {
    const lab = new Lab();
    const committed: string[] = [];
    for (let round = 0; round < 30; round++) {
      const names = [`victim${round}`, `other${round}`];
      const [victim, other] = workersOn(lab, { task: 'land', names, rounds: 3 });
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
    lab.git('fsck', '--strict');
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
    expect(lab.git('status', '--porcelain')).toBe('');
  });
});

describe('a process that makes workspaces', () => {
  it('may be killed at any moment, and the next one goes on with all that was done', async () => {
    const lab = new Lab();
    for (let round = 0; round < 40; round++) {
      const [victim] = workersOn(lab, { task: 'make', names: ['w'], rounds: 10 });
      await victim?.printed(1);
      victim?.start();
      await victim?.printed(2 + (round % 18));
      for (let turn = 0; turn < (round * 7919) % 400; turn++) await new Promise(setImmediate);
      await victim?.kill();
    }
    const survivors = workersOn(lab, { task: 'make', names: ['w'], rounds: 10 });
    await runTogether(survivors);
    expect(survivors[0]?.said('made')).toHaveLength(10);
    expect(listWorkspaces(await lab.open())).toHaveLength(10);
    lab.git('fsck', '--strict');
  });
});
