import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Lab } from '../test-support.ts';
import { createWorkspace } from './create.ts';
import { resetWorkspace } from './reset.ts';

async function resetLab() {
  const lab = new Lab();
  const repository = await lab.open();
  const { owner } = lab;
  const request = { repository, owner, path: lab.workspace('one'), base: 'main', branch: 'reprise/w/one' };
  const { workspace } = await createWorkspace(request);
  const { path, base, branch } = workspace;
  return {
    lab,
    path,
    base,
    branch,
    reset: (commit = base) => resetWorkspace({ repository, owner, path, commit }),
    state: () => [
      lab.gitAt(path, 'symbolic-ref', 'HEAD'),
      lab.gitAt(path, 'rev-parse', 'HEAD'),
      lab.gitAt(path, 'status', '--porcelain'),
    ],
    clean: [`refs/heads/${branch}`, base, ''],
    parkedRefs: () => lab.git('for-each-ref', '--format=%(refname)', 'refs/reprise/parked'),
  };
}

describe('resetting a workspace', () => {
  it('changes nothing in an unused workspace', async () => {
    const { reset, state, clean, parkedRefs } = await resetLab();
    expect(await reset()).toEqual({ parked: [] });
    expect(state()).toEqual(clean);
    expect(parkedRefs()).toBe('');
  });

  it('parks the commits of its branch', async () => {
    const { lab, path, reset, state, clean } = await resetLab();
    lab.commit(path, 'b.txt', 'b\n');
    const commit = lab.commit(path, 'c.txt', 'c\n');
    const ref = `refs/reprise/parked/w-one-${commit.slice(0, 12)}`;
    expect(await reset()).toEqual({ parked: [{ ref, commit, commits: 2 }] });
    expect(lab.git('rev-parse', ref)).toBe(commit);
    expect(state()).toEqual(clean);
    expect(await reset()).toEqual({ parked: [] });
  });

  it('parks no commits that are on another branch or in the target', async () => {
    const { lab, path, base, branch, reset, parkedRefs } = await resetLab();
    const first = lab.commit(path, 'b.txt', 'b\n');
    lab.git('branch', 'kept', branch);
    expect(await reset()).toEqual({ parked: [] });
    expect(await reset(first)).toEqual({ parked: [] });
    lab.git('branch', '--delete', '--force', 'kept');
    expect(await reset(first)).toEqual({ parked: [] });
    expect(lab.gitAt(path, 'rev-parse', `${branch}~1`)).toBe(base);
    expect(parkedRefs()).toBe('');
  });

  it('parks uncommitted changes on top of the commits, and keeps ignored files', async () => {
    const { lab, path, reset, state, clean } = await resetLab();
    writeFileSync(join(lab.root, '.git/info/exclude'), '.env\n');
    lab.write('.env', 'SECRET=1\n', path);
    lab.commit(path, 'b.txt', 'b\n');
    lab.write('a.txt', 'changed\n', path);
    lab.write('sub/-new\n.txt', 'new\n', path);
    const { parked } = await reset();
    expect(parked).toMatchObject([{ commits: 2 }]);
    const commit = parked[0]?.commit ?? '';
    expect(lab.git('ls-tree', '-r', '--name-only', '-z', commit)).toBe('a.txt\0b.txt\0sub/-new\n.txt\0');
    expect(lab.git('show', `${commit}:a.txt`)).toBe('changed');
    expect(state()).toEqual(clean);
    expect(existsSync(join(path, 'sub'))).toBe(false);
    expect(readFileSync(join(path, '.env'), 'utf8')).toBe('SECRET=1\n');
  });

  it('parks the branch and a detached HEAD, and returns to the branch', async () => {
    const { lab, path, reset, state, clean } = await resetLab();
    const onBranch = lab.commit(path, 'b.txt', 'b\n');
    lab.gitAt(path, 'switch', '--quiet', '--detach', 'main');
    const detached = lab.commit(path, 'c.txt', 'c\n');
    const { parked } = await reset();
    expect(parked.map(({ commit }) => commit).toSorted()).toEqual([onBranch, detached].toSorted());
    expect(state()).toEqual(clean);
  });

  it('ends a rebase with conflicts, and removes the lock of a killed git command', async () => {
    const { lab, path, branch, reset, state, clean } = await resetLab();
    const tip = lab.commit(path, 'a.txt', 'ours\n');
    lab.commit(lab.root, 'a.txt', 'theirs\n');
    expect(() => lab.gitAt(path, 'rebase', 'main')).toThrow();
    writeFileSync(join(lab.gitAt(path, 'rev-parse', '--absolute-git-dir'), 'index.lock'), '');
    const { parked } = await reset();
    expect(parked.map(({ commit }) => commit)).toContain(tip);
    expect(state()).toEqual(clean);
    expect(lab.gitAt(path, 'status')).not.toContain('rebase');
    expect(lab.git('rev-parse', branch)).toBe(clean[1]);
  });

  it('is refused for a folder that Reprise did not create, an invalid commit, or a workspace that contains another repository', async () => {
    const { lab, path, reset } = await resetLab();
    const repository = await lab.open();
    const request = { repository, owner: lab.owner, path: lab.root, commit: 'main' };
    await expect(resetWorkspace(request)).rejects.toThrow('is not a workspace that Reprise made');
    await expect(reset('--hard')).rejects.toThrow('"--hard" is not a commit to reset');
    lab.gitAt(path, 'init', '--quiet', 'inner');
    lab.write('inner/x.txt', 'x\n', path);
    const commit = lab.commit(lab.root, 'main.txt', 'x\n');
    await expect(reset(commit)).rejects.toMatchObject({
      code: 'WORKSPACE_FAILED',
      message: expect.stringContaining('there is another repository'),
    });
    expect(existsSync(join(path, 'inner/x.txt'))).toBe(true);
  });
});
