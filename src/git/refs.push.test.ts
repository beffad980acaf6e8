import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pushBranch } from './refs.ts';
import { Lab } from './test-support.ts';

const branch = 'reprise/task/fix-ü';

async function pushLab() {
  const lab = new Lab();
  const remote = join(lab.folder, 'the remote.git');
  lab.git('init', '--quiet', '--bare', remote);
  lab.git('remote', 'add', 'origin', remote);
  const { git } = await lab.open();
  return {
    lab,
    remote,
    push: (commit: string, changes: { remote?: string; branch?: string } = {}) =>
      pushBranch({ git, remote: 'origin', branch, commit, ...changes }),
    there: () => lab.gitAt(remote, 'rev-parse', '--verify', `refs/heads/${branch}`),
    /** Creates a commit that is not on main. */
    commit: (name: string) => {
      const commit = lab.commit(lab.root, name, 'x\n');
      lab.git('reset', '--quiet', '--hard', 'HEAD~1');
      return commit;
    },
  };
}

describe('a push', () => {
  it('creates the branch on the remote, and overwrites what it pushed before', async () => {
    const { push, there, commit, lab, remote } = await pushLab();
    const [one, two] = [commit('b.txt'), commit('c.txt')];
    expect(await push(one)).toEqual({ remote: 'origin', branch, commit: one });
    expect(await push(one)).toEqual({ remote: 'origin', branch, commit: one });
    expect(await push(two)).toMatchObject({ commit: two });
    expect(there()).toBe(two);
    expect(lab.gitAt(remote, 'for-each-ref', '--format=%(refname)')).toBe(`refs/heads/${branch}`);
    expect(lab.git('branch', '--list')).toBe('* main');
  });

  it('never overwrites commits that another repository pushed', async () => {
    const { lab, remote, push, there, commit } = await pushLab();
    const [one, two, other] = [commit('b.txt'), commit('c.txt'), commit('d.txt')];
    lab.git('push', '--quiet', remote, `${other}:refs/heads/${branch}`);
    const refusal = {
      code: 'CANNOT_LAND',
      message: `cannot push ${branch} to origin: [rejected] (stale info)`,
      hint: `the branch has changed on the remote; check it first: git fetch origin '${branch}'`,
    };
    await expect(push(one)).rejects.toMatchObject(refusal);
    lab.git('push', '--quiet', remote, `:refs/heads/${branch}`);
    await push(one);
    lab.git('push', '--quiet', '--force', remote, `${other}:refs/heads/${branch}`);
    await expect(push(two)).rejects.toMatchObject(refusal);
    expect(there()).toBe(other);
  });

  it('requires an existing remote', async () => {
    const { lab, push, commit } = await pushLab();
    const one = commit('b.txt');
    await expect(push(one, { remote: 'upstream' })).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: 'there is no remote "upstream" to push to',
      hint: 'use an existing remote (origin), or add it: git remote add upstream <url>',
    });
    await expect(push(one, { remote: '--all' })).rejects.toThrow('there is no remote');
    lab.git('remote', 'remove', 'origin');
    await expect(push(one)).rejects.toMatchObject({ hint: 'add it: git remote add origin <url>' });
  });

  it('reports that a hook rejects it, or that the remote is unreachable', async () => {
    const { push, commit, remote } = await pushLab();
    const one = commit('b.txt');
    const hook = join(remote, 'hooks/update');
    writeFileSync(hook, '#!/bin/sh\nexit 1\n');
    chmodSync(hook, 0o755);
    await expect(push(one)).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: expect.stringContaining('[remote rejected] (hook declined)'),
    });
    rmSync(remote, { recursive: true });
    await expect(push(one)).rejects.toMatchObject({
      code: 'GIT_FAILED',
      message: expect.stringContaining('cannot push to origin: '),
      hint: 'check the connection: git ls-remote origin',
    });
  });

  it.each(['main', 'reprise/../main', 'reprise/', '--mirror', ''])('refuses the branch %j', async name => {
    const { lab, push, remote } = await pushLab();
    await expect(push(lab.git('rev-parse', 'main'), { branch: name })).rejects.toThrow(
      'is not a branch of Reprise',
    );
    expect(lab.gitAt(remote, 'for-each-ref')).toBe('');
  });
});
