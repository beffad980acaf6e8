import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runTogether, Worker } from '../../src/git/processes.conformance.ts';
import { Lab } from '../../src/git/test-support.ts';
import { listWorkspaces } from '../../src/git/workspace/create.ts';
import { rounds } from '../support/rounds.ts';

const times = rounds(20);
const kills = rounds(40);

const workersOn = (lab: Lab, { task, names, count }: { task: string; names: string[]; count: number }) =>
  names.map(name => new Worker({ task, root: lab.root, name, rounds: count }));

/** Checks every workspace and returns their branches. */
async function soundWorkspaces(lab: Lab): Promise<readonly string[]> {
  const workspaces = await listWorkspaces(await lab.open());
  for (const { path, branch } of workspaces) {
    expect(existsSync(path)).toBe(true);
    expect(lab.gitAt(path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe(branch);
    expect(lab.gitAt(path, 'status', '--porcelain', '--ignored')).toBe('');
    expect(lab.gitAt(path, 'ls-files')).toBe('a.txt');
  }
  return workspaces.map(({ branch }) => branch).toSorted();
}

describe('two processes', () => {
  it(`create and remove 24 workspaces in parallel, ${times} times`, async () => {
    const lab = new Lab();
    const before = lab.fingerprint();
    for (let round = 0; round < times; round++) {
      const names = [`a${round}`, `b${round}`];
      const branchesOf = (name: string) =>
        Array.from({ length: 12 }, (_, index) => `reprise/w/${name}/${index}`);
      const [a, b] = workersOn(lab, { task: 'worktrees', names, count: 12 });
      if (!a || !b) throw new Error('two workers');
      await Promise.all([a.printed(1), b.printed(1)]);
      a.start();
      b.start();
      await Promise.all([a.printed(2), b.printed(2)]);
      expect([...a.said('made'), ...b.said('made')]).toEqual([Array(12).fill('new'), Array(12).fill('new')]);
      expect(await soundWorkspaces(lab)).toEqual(names.flatMap(branchesOf).toSorted());
      a.start();
      // In every other round, one process removes its workspaces while those of the other must stay.
      if (round % 2 === 1) {
        await a.done();
        expect(await soundWorkspaces(lab)).toEqual(branchesOf(`b${round}`).toSorted());
      }
      b.start();
      await Promise.all([a.done(), b.done()]);
      for (const each of [a, b]) expect(each.said('removed')).toEqual([Array(12).fill('deleted')]);
    }
    expect(lab.git('worktree', 'list').split('\n')).toHaveLength(1);
    expect(lab.git('branch', '--list')).toBe('* main');
    expect(lab.fingerprint()).toEqual(before);
  });
});

describe('a process that creates workspaces', () => {
  it('can be killed at any moment, and the next process reuses the finished workspaces', async () => {
    const lab = new Lab();
    for (let round = 0; round < kills; round++) {
      const [victim] = workersOn(lab, { task: 'make', names: ['w'], count: 10 });
      await victim?.printed(1);
      victim?.start();
      await victim?.printed(2 + (round % 18));
      for (let turn = 0; turn < (round * 7919) % 400; turn++) await new Promise(setImmediate);
      await victim?.kill();
    }
    const survivors = workersOn(lab, { task: 'make', names: ['w'], count: 10 });
    await runTogether(survivors);
    expect(survivors[0]?.said('made')).toHaveLength(10);
    expect(await listWorkspaces(await lab.open())).toHaveLength(10);
    lab.git('fsck', '--strict');
  });
});
