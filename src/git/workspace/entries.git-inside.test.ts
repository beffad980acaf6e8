import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Lab } from '../test-support.ts';
import { createWorkspace } from './create.ts';
import { gitDirOf, gitInside } from './entries.ts';
import { removeWorkspace } from './remove.ts';
import { resetWorkspace } from './reset.ts';
import { saveWork } from './save.ts';

/** Creates a workspace in its default place, inside the checkout, with an uncommitted file. */
async function insideLab() {
  const lab = new Lab();
  const repository = await lab.open();
  const { owner } = lab;
  const path = join(lab.root, '.reprise/workspaces/one');
  lab.write('.git/info/exclude', '.reprise\n');
  const request = { repository, owner, path, base: 'main', branch: 'reprise/w/one' };
  await createWorkspace(request);
  lab.write('new.txt', 'new\n', path);
  const checkout = () => [lab.git('symbolic-ref', 'HEAD'), lab.git('status', '--porcelain')];
  return { lab, repository, owner, path, request, checkout, untouched: ['refs/heads/main', ''] };
}

describe('a workspace whose .git was removed', () => {
  it('is not mistaken for the checkout around it', async () => {
    const { repository, path, checkout, untouched } = await insideLab();
    rmSync(join(path, '.git'));
    const git = gitInside(repository, path);
    await git.ok(['add', '--all']);
    expect(await git.line(['symbolic-ref', 'HEAD'])).toBe('refs/heads/reprise/w/one');
    expect(checkout()).toEqual(untouched);
  });

  it('saves its work', async () => {
    const { lab, repository, path, request, checkout, untouched } = await insideLab();
    rmSync(join(path, '.git'));
    const { branch } = request;
    const base = lab.git('rev-parse', 'main');
    const at = '2026-01-02T03:04:05.678Z';
    const saved = await saveWork(repository, { path, branch, base, message: 'Save', at });
    expect(saved).toMatchObject({ commits: 1, files: 1 });
    expect(lab.git('show', `${branch}:new.txt`)).toBe('new');
    expect(checkout()).toEqual(untouched);
  });

  it('is repaired when its git folder is looked up, or when it is created again', async () => {
    const { lab, repository, path, request } = await insideLab();
    rmSync(join(path, '.git'));
    expect(await gitDirOf(repository, path)).toBe(join(lab.root, '.git/worktrees/one'));
    expect(lab.gitAt(path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/reprise/w/one');
    rmSync(join(path, '.git'));
    expect(await createWorkspace(request)).toMatchObject({ made: 'reused' });
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('?? new.txt');
  });

  it('is not removed while it has uncommitted changes, and can be reset', async () => {
    const { repository, owner, path, checkout, untouched } = await insideLab();
    rmSync(join(path, '.git'));
    expect(await removeWorkspace({ repository, owner, path })).toEqual({
      kind: 'uncommitted-changes',
      files: ['new.txt'],
    });
    const { parked } = await resetWorkspace({ repository, owner, path, commit: 'main' });
    expect(parked).toHaveLength(1);
    expect(checkout()).toEqual(untouched);
    rmSync(join(path, '.git'));
    expect(await removeWorkspace({ repository, owner, path })).toMatchObject({ kind: 'removed' });
    expect(existsSync(path)).toBe(false);
  });
});

describe('a workspace that an agent turned into a separate repository', () => {
  const at = '2026-01-02T03:04:05.678Z';

  async function separateLab(...options: readonly string[]) {
    const inside = await insideLab();
    const { lab, path, request } = inside;
    rmSync(join(path, '.git'));
    lab.gitAt(path, 'init', '--quiet', '--initial-branch=own', ...options);
    const work = { path, branch: request.branch, base: lab.git('rev-parse', 'main'), message: 'Save', at };
    return { ...inside, work };
  }

  it.each([
    ['a .git folder', []],
    ['a .git file', ['--separate-git-dir=../elsewhere']],
  ])('saves its work on its own branch, and can be reset (%s)', async (_, options) => {
    const { lab, repository, owner, path, request, work, checkout, untouched } = await separateLab(
      ...options,
    );
    expect(await createWorkspace(request)).toMatchObject({ made: 'reused' });
    expect(await saveWork(repository, work)).toMatchObject({ commits: 1, files: 1 });
    expect(lab.git('show', `${request.branch}:new.txt`)).toBe('new');
    expect(lab.gitAt(path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/own');
    expect(await resetWorkspace({ repository, owner, path, commit: 'main' })).toMatchObject({
      parked: [{ commits: 1 }],
    });
    expect(checkout()).toEqual(untouched);
  });

  it('is not removed, because its commits exist nowhere else', async () => {
    const { repository, owner, path, work } = await separateLab();
    await saveWork(repository, work);
    expect(await removeWorkspace({ repository, owner, path })).toEqual({
      kind: 'uncommitted-changes',
      files: ['.git/'],
    });
    expect(existsSync(join(path, '.git/HEAD'))).toBe(true);
  });

  it('is neither changed nor removed if its git folder is unknown', async () => {
    const { lab, repository, owner, path, request, work } = await separateLab();
    rmSync(join(lab.root, '.git/reprise/worktrees'), { recursive: true });
    const refusal = { code: 'WORKSPACE_FAILED', message: `there is another repository in ${path}: .git` };
    await expect(createWorkspace(request)).rejects.toMatchObject(refusal);
    await expect(saveWork(repository, work)).rejects.toMatchObject(refusal);
    await expect(resetWorkspace({ repository, owner, path, commit: 'main' })).rejects.toMatchObject({
      code: 'WORKSPACE_FAILED',
    });
    expect(await removeWorkspace({ repository, owner, path })).toMatchObject({ files: ['.git/'] });
    expect(existsSync(join(path, 'new.txt'))).toBe(true);
  });
});

it('ignores the record of a worktree whose git folder has become another one', async () => {
  const { lab, repository, path, request } = await insideLab();
  lab.git('worktree', 'remove', '--force', '--force', path);
  const other = join(lab.folder, 'elsewhere', 'one');
  lab.git('worktree', 'add', '--quiet', '-b', 'other', other);
  lab.git('worktree', 'add', '--quiet', path, request.branch);
  expect(lab.gitAt(other, 'rev-parse', '--absolute-git-dir')).toBe(join(lab.root, '.git/worktrees/one'));
  expect(await gitDirOf(repository, path)).toBe(join(lab.root, '.git/worktrees/one1'));
  expect(await gitInside(repository, path).line(['symbolic-ref', '--short', 'HEAD'])).toBe(request.branch);
});
