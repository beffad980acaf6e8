import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Lab } from '../test-support.ts';
import { worktreeStatus } from './commit.ts';
import { createWorkspace } from './create.ts';
import { gitInside, restoreLink } from './entries.ts';
import { removeWorkspace } from './remove.ts';
import { resetWorkspace } from './reset.ts';

/** A workspace inside of the checkout, as they are by default, with a file that nobody has committed. */
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
  it('is not taken for the checkout that it is in', async () => {
    const { repository, path, checkout, untouched } = await insideLab();
    rmSync(join(path, '.git'));
    const git = gitInside(repository, path);
    expect((await worktreeStatus(git)).uncommitted).toEqual(['new.txt']);
    await git.ok(['add', '--all']);
    expect(await git.line(['symbolic-ref', 'HEAD'])).toBe('refs/heads/reprise/w/one');
    expect(checkout()).toEqual(untouched);
  });

  it('is a workspace again once the link is restored, or it is asked for again', async () => {
    const { lab, repository, path, request } = await insideLab();
    rmSync(join(path, '.git'));
    restoreLink(repository, path);
    expect(lab.gitAt(path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/reprise/w/one');
    rmSync(join(path, '.git'));
    expect(await createWorkspace(request)).toMatchObject({ made: 'reused' });
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('?? new.txt');
  });

  it('is not removed while something in it is uncommitted, and can be brought back', async () => {
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

it('a folder that has become a repository of its own is not removed', async () => {
  const { lab, repository, owner, path } = await insideLab();
  rmSync(join(path, '.git'));
  rmSync(join(path, 'new.txt'));
  mkdirSync(path, { recursive: true });
  lab.gitAt(path, 'init', '--quiet');
  expect(await removeWorkspace({ repository, owner, path })).toEqual({
    kind: 'uncommitted-changes',
    files: ['.git/'],
  });
});
