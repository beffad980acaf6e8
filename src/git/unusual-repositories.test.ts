import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { land } from './landing/advance.ts';
import { resolveBase } from './refs.ts';
import { openRepository } from './repository.ts';
import { Lab, plainEnvironment, temporaryFolder } from './test-support.ts';
import { createWorkspace, listWorkspaces } from './workspace/create.ts';
import { removeWorkspace } from './workspace/remove.ts';
import { resetWorkspace } from './workspace/reset.ts';

const open = (cwd: string) => openRepository({ cwd, inheritEnv: plainEnvironment });

/** Creates a workspace, commits in it, lands it on main and removes it. */
async function workIn(lab: Lab, cwd: string) {
  const repository = await open(cwd);
  const { owner } = lab;
  const path = lab.workspace('one');
  const branch = 'reprise/w/one';
  await createWorkspace({ repository, owner, path, base: await resolveBase(repository, 'main'), branch });
  const commit = lab.commit(path, 'b.txt', 'b\n');
  const landing = await land({ repository, owner, source: { branch }, onto: 'main' });
  expect(landing).toMatchObject({ kind: 'landed', commit });
  expect(await removeWorkspace({ repository, owner, path })).toMatchObject({ branch: { kind: 'deleted' } });
  expect(await listWorkspaces(repository)).toEqual([]);
  return { landing, commit };
}

describe('a repository', () => {
  it('without a commit is refused, with a hint', async () => {
    const root = temporaryFolder();
    new Lab().gitAt(root, 'init', '--quiet', '--initial-branch=main');
    const repository = await open(root);
    for (const name of ['HEAD', 'main']) {
      await expect(resolveBase(repository, name)).rejects.toMatchObject({
        code: 'WORKSPACE_FAILED',
        message: `${root} has no commit to begin from`,
        hint: 'make one first: git commit --allow-empty -m "Begin"',
      });
    }
  });

  it('without the named branch is refused, with a hint', async () => {
    const repository = await new Lab().open();
    await expect(resolveBase(repository, 'nowhere')).rejects.toMatchObject({
      code: 'WORKSPACE_FAILED',
      message: '"nowhere" is no commit to begin from',
      hint: 'name a branch, a tag or a commit; git branch --all lists the branches',
    });
  });

  it('with a detached HEAD starts from its commit', async () => {
    const lab = new Lab();
    lab.git('switch', '--quiet', '--detach');
    const detached = lab.commit(lab.root, 'c.txt', 'c\n');
    expect(await resolveBase(await lab.open())).toBe(detached);
    const { landing } = await workIn(lab, lab.root);
    expect(landing).toMatchObject({ checkout: undefined });
    expect(lab.git('rev-parse', 'HEAD')).toBe(detached);
  });

  it('may be bare', async () => {
    const lab = new Lab();
    const bare = join(lab.folder, 'bare.git');
    lab.git('clone', '--quiet', '--bare', lab.root, bare);
    const { commit } = await workIn(lab, bare);
    expect(lab.gitAt(bare, 'rev-parse', 'main')).toBe(commit);
  });

  it('may be opened in a linked worktree', async () => {
    const lab = new Lab();
    const linked = join(lab.folder, 'linked');
    lab.git('worktree', 'add', '--quiet', '-b', 'feature', linked);
    await workIn(lab, join(linked));
    expect(lab.gitAt(linked, 'status', '--porcelain')).toBe('');
    expect(lab.git('show', 'main:b.txt')).toBe('b');
  });

  it('may be opened in the workspace to remove', async () => {
    const lab = new Lab();
    const request = { owner: lab.owner, path: lab.workspace('one'), base: 'main', branch: 'reprise/w/one' };
    await createWorkspace({ repository: await lab.open(), ...request });
    const repository = await open(request.path);
    expect(await removeWorkspace({ repository, owner: lab.owner, path: request.path })).toMatchObject({
      branch: { kind: 'deleted' },
    });
    expect(existsSync(request.path)).toBe(false);
    expect(lab.git('branch', '--list')).toBe('* main');
  });

  it('may be a submodule', async () => {
    const { lab, submodule } = labWithSubmodule();
    const before = lab.git('rev-parse', 'HEAD');
    const { commit } = await workIn(lab, submodule);
    expect(lab.gitAt(submodule, 'rev-parse', 'HEAD')).toBe(commit);
    expect(lab.git('rev-parse', 'HEAD')).toBe(before);
    expect(lab.git('status', '--porcelain')).toBe('M sub'.padStart(6));
  });
});

function labWithSubmodule() {
  const lab = new Lab();
  const other = new Lab(temporaryFolder());
  lab.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other.root, 'sub');
  lab.git('commit', '--quiet', '--message=Add a submodule');
  return { lab, submodule: join(lab.root, 'sub') };
}

describe('a repository with unusual refs', () => {
  it('may have all refs packed', async () => {
    const lab = new Lab();
    lab.git('pack-refs', '--all', '--prune');
    const { commit } = await workIn(lab, lab.root);
    expect(lab.git('rev-parse', 'main')).toBe(commit);
    expect(lab.git('status', '--porcelain')).toBe('');
  });

  it('may land on a branch that is a symbolic ref, without replacing it', async () => {
    const lab = new Lab();
    lab.git('branch', '--move', 'main', 'trunk');
    lab.git('symbolic-ref', 'refs/heads/main', 'refs/heads/trunk');
    lab.git('switch', '--quiet', '--detach');
    const repository = await lab.open();
    const { owner } = lab;
    const branch = 'reprise/w/one';
    const path = lab.workspace('one');
    await createWorkspace({ repository, owner, path, base: 'main', branch });
    lab.commit(path, 'b.txt', 'b\n');
    await land({ repository, owner, source: { branch }, onto: 'trunk' });
    expect(lab.git('symbolic-ref', 'refs/heads/main')).toBe('refs/heads/trunk');
    expect(lab.git('show', 'main:b.txt')).toBe('b');
  });
});

describe('a workspace with a submodule', () => {
  async function withClonedSubmodule() {
    const { lab } = labWithSubmodule();
    const repository = await lab.open();
    const request = { repository, owner: lab.owner, path: lab.workspace('one') };
    const { workspace } = await createWorkspace({ ...request, base: 'main', branch: 'reprise/w/one' });
    const allow = ['-c', 'protocol.file.allow=always'];
    lab.gitAt(workspace.path, ...allow, 'submodule', '--quiet', 'update', '--init');
    return { lab, request, workspace };
  }

  it('is removed if it has no work', async () => {
    const { request } = await withClonedSubmodule();
    expect(await removeWorkspace(request)).toMatchObject({ branch: { kind: 'deleted' } });
    expect(existsSync(request.path)).toBe(false);
  });

  it('is kept while the submodule has commits that exist nowhere else', async () => {
    const { lab, request, workspace } = await withClonedSubmodule();
    lab.commit(join(workspace.path, 'sub'), 'lost.txt', 'lost?\n');
    expect(await removeWorkspace(request)).toMatchObject({ kind: 'uncommitted-changes' });
    lab.gitAt(workspace.path, 'commit', '--quiet', '--all', '--message=Use it');
    expect(lab.gitAt(workspace.path, 'status', '--porcelain')).toBe('');
    expect(await removeWorkspace(request)).toEqual({ kind: 'uncommitted-changes', files: ['sub'] });
    await expect(resetWorkspace({ ...request, commit: 'main' })).rejects.toMatchObject({
      code: 'WORKSPACE_FAILED',
      message: `submodules in ${request.path} have commits that were not pushed: sub`,
    });
    expect(existsSync(join(workspace.path, 'sub/lost.txt'))).toBe(true);
  });
});
