import { describe, expect, it } from 'vitest';
import { applyGc, gatherGcFacts } from '../gc/apply.ts';
import { planGc, type RunActivity } from '../gc/plan.ts';
import { land } from '../landing/advance.ts';
import { Lab } from '../test-support.ts';
import { deliverOnBranch, parkedWork, parkOnBranch } from './branch-records.ts';
import { createWorkspace } from './create.ts';
import { removeWorkspace } from './remove.ts';

async function keepLab() {
  const lab = new Lab();
  const repository = await lab.open();
  const commits = ['b.txt', 'c.txt', 'd.txt'].map(name => {
    const commit = lab.commit(lab.root, name, 'x\n');
    lab.git('reset', '--quiet', '--hard', 'HEAD~1');
    return commit;
  });
  return { lab, repository, commits };
}

describe('a branch that keeps work', () => {
  it('is named after its task', async () => {
    const { lab, repository, commits } = await keepLab();
    const [commit = ''] = commits;
    expect(await parkOnBranch({ repository, commit, name: 'fix-readme' })).toBe('reprise/parked/fix-readme');
    expect(await deliverOnBranch({ repository, commit, name: 'fix-readme' })).toBe('reprise/task/fix-readme');
    expect(lab.git('rev-parse', 'reprise/parked/fix-readme')).toBe(commit);
  });

  it('is listed with its last commit', async () => {
    const { repository, commits } = await keepLab();
    const [commit = '', other = ''] = commits;
    expect(await parkedWork(repository)).toEqual([]);
    await parkOnBranch({ repository, commit, name: '日本語' });
    await parkOnBranch({ repository, commit: other, name: 'fix-readme' });
    await deliverOnBranch({ repository, commit, name: 'delivered' });
    const at = '2026-01-01T00:00:00+00:00';
    expect(await parkedWork(repository)).toEqual([
      { branch: 'reprise/parked/fix-readme', commit: other, at, subject: 'Write c.txt' },
      { branch: 'reprise/parked/日本語', commit, at, subject: 'Write b.txt' },
    ]);
  });

  it('gets a number if the name is taken, and never moves another branch', async () => {
    const { lab, repository, commits } = await keepLab();
    const keep = (commit = '') => parkOnBranch({ repository, commit, name: 'task' });
    const made: string[] = [];
    for (const commit of [...commits, ...commits]) made.push(await keep(commit));
    const expected = ['reprise/parked/task', 'reprise/parked/task-2', 'reprise/parked/task-3'];
    expect(made).toEqual([...expected, ...expected]);
    expect(expected.map(branch => lab.git('rev-parse', branch))).toEqual(commits);
    lab.git('pack-refs', '--all');
    expect(await keep(commits[1])).toBe('reprise/parked/task-2');
  });

  it('is created once by concurrent calls', async () => {
    const { repository, commits } = await keepLab();
    const made = await Promise.all(
      [...commits, ...commits].map(commit => parkOnBranch({ repository, commit, name: 'task' })),
    );
    expect(made.slice(0, 3).toSorted()).toEqual([
      'reprise/parked/task',
      'reprise/parked/task-2',
      'reprise/parked/task-3',
    ]);
    expect(made.slice(3)).toEqual(made.slice(0, 3));
  });

  it.each(['a b/../c', '日本 🚀', '--force', '..', '', 'x.lock', 'two\nlines'])(
    'can be named after %j',
    async name => {
      const { lab, repository, commits } = await keepLab();
      const branch = await parkOnBranch({ repository, commit: commits[0] ?? '', name });
      expect(branch).toMatch(/^reprise\/parked\/[^/]+$/);
      lab.git('check-ref-format', '--branch', branch);
      expect(lab.git('rev-parse', `refs/heads/${branch}`)).toBe(commits[0]);
    },
  );

  it('reports why it cannot be created', async () => {
    const { lab, repository, commits } = await keepLab();
    lab.git('branch', 'reprise/parked');
    await expect(parkOnBranch({ repository, commit: commits[0] ?? '', name: 'x' })).rejects.toMatchObject({
      code: 'GIT_FAILED',
      message: expect.stringMatching(/^cannot make the branch reprise\/parked\/x: .*exists; cannot create/),
    });
  });
});

describe('cleaning up after a worker', () => {
  const standing = new Map<string, RunActivity>([['run-1', 'ended']]);

  async function workerLab() {
    const lab = new Lab();
    const repository = await lab.open();
    const { owner } = lab;
    const make = async (name: string, branch: string) => {
      const place = { path: lab.workspace(name), base: 'main', branch, run: 'run-1', step: 'work' };
      return (await createWorkspace({ repository, owner, ...place })).workspace;
    };
    const collect = async () => {
      const plan = planGc(await gatherGcFacts({ repository, owner }), standing);
      return applyGc({ repository, owner, plan });
    };
    const branches = () => lab.git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n');
    return { lab, repository, owner, make, collect, branches };
  }

  it('keeps parked work, and removes its original workspace and branch', async () => {
    const { lab, repository, owner, make, collect, branches } = await workerLab();
    const one = await make('one', 'reprise/worker/run-1/work');
    const two = await make('two', 'reprise/worker/run-1/more');
    const parked = lab.commit(one.path, 'b.txt', 'b\n');
    const delivered = lab.commit(two.path, 'c.txt', 'c\n');
    await parkOnBranch({ repository, commit: parked, name: 'one' });
    await deliverOnBranch({ repository, commit: delivered, name: 'two' });
    await removeWorkspace({ repository, owner, path: one.path });
    await collect();
    await collect();
    expect(branches()).toEqual(['main', 'reprise/parked/one', 'reprise/task/two']);
    expect(lab.git('rev-parse', 'reprise/parked/one', 'reprise/task/two')).toBe(`${parked}\n${delivered}`);
    // Even after they have landed, only a person deletes them.
    await land({ repository, owner, source: { branch: 'reprise/parked/one' }, onto: 'main' });
    await collect();
    expect(branches()).toEqual(['main', 'reprise/parked/one', 'reprise/task/two']);
  });

  it.each(['reprise/task/one', 'reprise/parked/one'])(
    'keeps %s as the branch of a workspace until its commits exist elsewhere',
    async branch => {
      const { lab, make, collect, branches } = await workerLab();
      const { path } = await make('one', branch);
      const commit = lab.commit(path, 'b.txt', 'b\n');
      expect(await collect()).toMatchObject({ parked: [{ branch, commit, commits: 1 }] });
      await collect();
      expect(branches()).toEqual(['main', branch]);
      lab.git('merge', '--quiet', '--ff-only', branch);
      await collect();
      expect(branches()).toEqual(['main']);
    },
  );

  it('keeps a workspace with a conflict', async () => {
    const { lab, make, collect } = await workerLab();
    const { path } = await make('one', 'reprise/worker/run-1/work');
    lab.write('a.txt', '<<<<<<< main\n', path);
    lab.gitAt(path, 'switch', '--quiet', '--detach');
    expect(await collect()).toMatchObject({ removed: [] });
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe(' M a.txt');
  });
});
