import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runTogether, Worker } from '../processes.conformance.ts';
import { Lab } from '../test-support.ts';
import { branchRecords } from './branch-records.ts';
import { createWorkspace, listWorkspaces, type WorkspaceRequest } from './create.ts';
import { lockReason } from './entries.ts';
import { removeWorkspace } from './remove.ts';

async function make(lab: Lab, name: string, changes: Partial<WorkspaceRequest> = {}) {
  const repository = await lab.open();
  const branch = `reprise/w/${name}`;
  return createWorkspace({
    repository,
    owner: lab.owner,
    path: lab.workspace(name),
    base: 'main',
    branch,
    ...changes,
  });
}

const label = (lab: Lab, branch: string) =>
  lockReason({ kind: 'workspace', base: lab.git('rev-parse', 'main'), branch });

describe('creating a workspace', () => {
  it('checks out the base in a separate folder, on a separate branch', async () => {
    const lab = new Lab();
    const labels = { run: 'r1', step: 'build', worker: 3 };
    const { workspace, made } = await make(lab, 'one', labels);
    const base = lab.git('rev-parse', 'main');
    expect(made).toBe('new');
    expect(workspace).toEqual({ path: lab.workspace('one'), branch: 'reprise/w/one', base, ...labels });
    expect(lab.gitAt(workspace.path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe('reprise/w/one');
    expect(readFileSync(join(workspace.path, 'a.txt'), 'utf8')).toBe('one\n');
    expect(await listWorkspaces(await lab.open())).toEqual([{ ...workspace, missing: false }]);
  });

  it('runs the post-checkout hook, as git does for a new worktree', async () => {
    const lab = new Lab();
    const hook = join(lab.root, '.git/hooks/post-checkout');
    mkdirSync(join(lab.root, '.git/hooks'), { recursive: true });
    writeFileSync(hook, '#!/bin/sh\necho "$@" > hooked.txt\n', { mode: 0o755 });
    const { workspace } = await make(lab, 'one');
    const nothing = '0'.repeat(40);
    expect(readFileSync(join(workspace.path, 'hooked.txt'), 'utf8')).toBe(`${nothing} ${workspace.base} 1\n`);
  });

  it('gives the same worktree as git, even beside one whose folder has the same name', async () => {
    const lab = new Lab();
    const plain = join(lab.folder, 'plain', 'one');
    lab.git('worktree', 'add', '--quiet', '-b', 'plain', plain);
    const { workspace } = await make(lab, 'one');
    lab.git('worktree', 'unlock', workspace.path);
    const describe = (path: string) => [
      lab.gitAt(path, 'status', '--porcelain=v2', '--branch').replace(/branch.head .*/, ''),
      lab.gitAt(path, 'rev-parse', '--is-inside-work-tree', '--show-toplevel').replace(path, ''),
      lab.gitAt(path, 'ls-files', '--stage'),
    ];
    expect(describe(workspace.path)).toEqual(describe(plain));
    lab.git('worktree', 'repair');
    lab.git('fsck', '--strict');
    expect(lab.git('worktree', 'list', '--porcelain')).toContain(`worktree ${workspace.path}\n`);
  });

  it.each([
    ['before it wrote where the worktree is', ['gitdir', 'HEAD', 'commondir'], ['.git', 'a.txt']],
    ['before it linked the folder', ['HEAD', 'commondir', 'index'], ['.git', 'a.txt']],
    ['before it checked out a file', ['index'], ['a.txt']],
    ['while it wrote the link', ['index'], ['a.txt', '.git=']],
  ])('continues after git was killed %s', async (_, inGit, inFolder) => {
    const lab = new Lab();
    const { path } = (await make(lab, 'one')).workspace;
    const gitDir = lab.gitAt(path, 'rev-parse', '--absolute-git-dir');
    for (const name of [...inGit, 'reprise.json']) rmSync(join(gitDir, name));
    for (const name of inFolder) {
      if (name.endsWith('=')) writeFileSync(join(path, name.slice(0, -1)), '');
      else rmSync(join(path, name));
    }
    expect((await make(lab, 'one')).made).toMatch(/^(new|remade)$/);
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('');
    expect(lab.gitAt(path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/reprise/w/one');
    expect((await make(lab, 'one')).made).toBe('reused');
  });

  it("does not change a byte of the user's checkout", async () => {
    const lab = new Lab();
    lab.write('a.txt', 'changed\n');
    lab.write('staged.txt', 'staged\n');
    lab.git('add', 'staged.txt');
    lab.write('untracked.txt', 'untracked\n');
    const before = lab.fingerprint();
    const { workspace } = await make(lab, 'one');
    lab.commit(workspace.path, 'b.txt', 'b\n');
    expect(lab.fingerprint()).toEqual(before);
    await removeWorkspace({ repository: await lab.open(), owner: lab.owner, path: workspace.path });
    expect(lab.fingerprint()).toEqual(before);
  });

  it.each(['main', 'feat/x'])('works beside %s, with spaces and Unicode in its path', async branch => {
    const lab = new Lab();
    if (branch !== 'main') lab.git('switch', '--quiet', '--create', branch);
    const path = join(lab.folder, 'söme where', "it's");
    const { workspace } = await make(lab, 'x', { path, base: branch, branch: `${branch}-2` });
    expect(lab.gitAt(workspace.path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe(`${branch}-2`);
  });

  it('works from a detached HEAD and in a bare repository', async () => {
    const lab = new Lab();
    lab.git('checkout', '--quiet', '--detach');
    expect((await make(lab, 'one', { base: 'HEAD' })).made).toBe('new');
    lab.git('worktree', 'remove', '--force', '--force', lab.workspace('one'));
    lab.git('config', 'core.bare', 'true');
    expect((await make(lab, 'two')).made).toBe('new');
  });

  it("sets no upstream, even if the user's settings ask for it", async () => {
    const lab = new Lab();
    lab.git('config', 'branch.autoSetupMerge', 'always');
    const before = readFileSync(join(lab.root, '.git/config'), 'utf8');
    await make(lab, 'one');
    expect(readFileSync(join(lab.root, '.git/config'), 'utf8')).toBe(before);
  });

  it('fails in an empty repository, with a hint', async () => {
    const lab = new Lab();
    lab.git('update-ref', '-d', 'HEAD');
    await expect(make(lab, 'one')).rejects.toMatchObject({
      code: 'WORKSPACE_FAILED',
      message: `${lab.root} has no commit to begin from`,
      hint: expect.stringContaining('git commit --allow-empty'),
    });
  });

  it.each(['-b', '--force', '../up', 'a b', 'a\nb', ''])('refuses %j as a branch', async branch => {
    const lab = new Lab();
    await expect(make(lab, 'one', { branch })).rejects.toMatchObject({ code: 'WORKSPACE_FAILED' });
    expect(existsSync(lab.workspace('one'))).toBe(false);
  });

  it.each(['--detach', '-f', 'no/such', '$(touch x)'])('refuses %j as a base', async base => {
    const lab = new Lab();
    await expect(make(lab, 'one', { base })).rejects.toMatchObject({ code: 'WORKSPACE_FAILED' });
    expect(await listWorkspaces(await lab.open())).toEqual([]);
  });

  it('refuses a branch that is checked out elsewhere', async () => {
    const lab = new Lab();
    await expect(make(lab, 'one', { branch: 'main' })).rejects.toThrow(/already checked out|already used/);
  });
});

describe('a path that Reprise did not create', () => {
  it('is refused if it has files', async () => {
    const lab = new Lab();
    lab.write('mine.txt', 'mine\n', lab.workspace('one'));
    await expect(make(lab, 'one')).rejects.toThrow('is not a workspace that Reprise made');
    expect(readFileSync(join(lab.workspace('one'), 'mine.txt'), 'utf8')).toBe('mine\n');
  });

  it("is refused if it is the user's worktree", async () => {
    const lab = new Lab();
    lab.git('worktree', 'add', '--quiet', '-b', 'reprise/w/one', lab.workspace('one'));
    await expect(make(lab, 'one')).rejects.toThrow('is not a workspace that Reprise made');
    const request = { repository: await lab.open(), owner: lab.owner, path: lab.workspace('one') };
    await expect(removeWorkspace(request)).rejects.toThrow('is not a workspace that Reprise made');
    expect(await listWorkspaces(await lab.open())).toEqual([]);
  });

  it('is refused if it is the workspace of another branch', async () => {
    const lab = new Lab();
    await make(lab, 'one');
    await expect(make(lab, 'one', { branch: 'reprise/w/two' })).rejects.toThrow(
      'is the workspace of reprise/w/one, not of reprise/w/two',
    );
  });
});

describe('creating a workspace again', () => {
  it('finds it with its commits and changes', async () => {
    const lab = new Lab();
    const { workspace } = await make(lab, 'one');
    const commit = lab.commit(workspace.path, 'b.txt', 'b\n');
    lab.write('c.txt', 'c\n', workspace.path);
    lab.commit(lab.root, 'main.txt', 'main moved\n');
    const again = await make(lab, 'one');
    expect(again).toEqual({ workspace, made: 'reused', isSetUp: false, wasAlone: true });
    expect(lab.gitAt(workspace.path, 'rev-parse', 'HEAD')).toBe(commit);
    expect(lab.gitAt(workspace.path, 'status', '--porcelain')).toBe('?? c.txt');
  });

  it('finds one whose record a power cut left empty', async () => {
    const lab = new Lab();
    const { workspace } = await make(lab, 'one');
    writeFileSync(join(lab.gitAt(workspace.path, 'rev-parse', '--absolute-git-dir'), 'reprise.json'), '');
    lab.write('c.txt', 'c\n', workspace.path);
    expect(await make(lab, 'one')).toMatchObject({ workspace, made: 'reused' });
    expect(lab.gitAt(workspace.path, 'status', '--porcelain')).toBe('?? c.txt');
  });

  it('replaces one that a crash left half checked out', async () => {
    const lab = new Lab();
    const path = lab.workspace('one');
    const reason = label(lab, 'reprise/w/one');
    lab.git(
      'worktree',
      'add',
      '--quiet',
      '--no-checkout',
      '--lock',
      '--reason',
      reason,
      '-b',
      'reprise/w/one',
      path,
    );
    writeFileSync(join(path, 'half.txt'), 'half');
    expect((await make(lab, 'one')).made).toBe('remade');
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('');
    expect(branchRecords(await lab.open())).toMatchObject([{ branch: 'reprise/w/one' }]);
  });

  it('restores one whose folder was deleted, from its branch', async () => {
    const lab = new Lab();
    const { workspace } = await make(lab, 'one');
    const commit = lab.commit(workspace.path, 'b.txt', 'b\n');
    rmSync(workspace.path, { recursive: true });
    expect(await listWorkspaces(await lab.open())).toMatchObject([{ missing: true }]);
    expect((await make(lab, 'one')).made).toBe('remade');
    expect(lab.gitAt(workspace.path, 'rev-parse', 'HEAD')).toBe(commit);
  });

  it('continues a branch that has no worktree', async () => {
    const lab = new Lab();
    const { workspace } = await make(lab, 'one');
    const commit = lab.commit(workspace.path, 'b.txt', 'b\n');
    lab.git('worktree', 'remove', '--force', '--force', workspace.path);
    lab.commit(lab.root, 'main.txt', 'main moved\n');
    expect((await make(lab, 'one')).made).toBe('new');
    expect(lab.gitAt(workspace.path, 'rev-parse', 'HEAD')).toBe(commit);
  });

  it('never deletes a branch that the user created', async () => {
    const lab = new Lab();
    lab.git('branch', 'feat/x');
    const { workspace } = await make(lab, 'one', { branch: 'feat/x' });
    const request = { repository: await lab.open(), owner: lab.owner, path: workspace.path };
    expect(await removeWorkspace(request)).toMatchObject({
      branch: { kind: 'kept', why: 'not made by Reprise' },
    });
    expect(lab.git('branch', '--list', 'feat/x')).toContain('feat/x');
  });
});

describe('ignored files', () => {
  const ignoring = (include: string) => {
    const lab = new Lab();
    lab.write('.gitignore', '.env*\nbuild/\n*.log\n');
    lab.write('.worktreeinclude', include);
    lab.commit(lab.root, 'b.txt', 'b\n');
    lab.write('.env', 'SECRET=1\n');
    lab.write('packages/ä b/.env.local', 'SECRET=2\n');
    lab.write('build/out/x.js', 'x\n');
    lab.write('.hidden.log', 'log\n');
    lab.write('notes.txt', 'untracked, but not ignored\n');
    return lab;
  };

  it('are copied if .worktreeinclude matches them', async () => {
    const lab = ignoring('# comment\n.env*\n/build/\n!.env.local\nnotes.txt\na.txt\n');
    const { path } = (await make(lab, 'one')).workspace;
    expect(readFileSync(join(path, '.env'), 'utf8')).toBe('SECRET=1\n');
    expect(existsSync(join(path, 'build/out/x.js'))).toBe(true);
    for (const name of ['packages', 'notes.txt', '.hidden.log'])
      expect(existsSync(join(path, name))).toBe(false);
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('');
  });

  it('are copied if the request matches them, with modes and symbolic links', async () => {
    const lab = ignoring('');
    lab.write('build/tool.sh', 'x\n');
    writeFileSync(join(lab.root, 'build/run'), 'x', { mode: 0o755 });
    symlinkSync('run', join(lab.root, 'build/link'));
    const { path } = (await make(lab, 'one', { include: ['build/', '--x', '.env.local'] })).workspace;
    expect(statSync(join(path, 'build/run')).mode & 0o111).toBe(0o111);
    expect(existsSync(join(path, 'build/link'))).toBe(true);
    expect(readFileSync(join(path, 'packages/ä b/.env.local'), 'utf8')).toBe('SECRET=2\n');
    expect(existsSync(join(path, '.env'))).toBe(false);
  });

  it('are never written through a symbolic link that leads out of the workspace', async () => {
    const lab = ignoring('.env\n');
    const outside = join(lab.folder, 'outside');
    mkdirSync(outside);
    const base = lab.git('rev-parse', 'main');
    symlinkSync(outside, join(lab.root, 'config'));
    lab.commit(lab.root, 'c.txt', 'c\n');
    const linked = lab.git('rev-parse', 'main');
    lab.git('reset', '--quiet', '--hard', base);
    lab.write('config/.env', 'SECRET=3\n');
    const { path } = (await make(lab, 'one', { base: linked })).workspace;
    expect(existsSync(join(outside, '.env'))).toBe(false);
    expect(existsSync(join(path, '.env'))).toBe(true);
  });

  it('of other workspaces are not copied', async () => {
    const lab = ignoring('.env\n');
    writeFileSync(join(lab.root, '.git/info/exclude'), '.reprise/\n');
    await make(lab, 'one', { path: join(lab.root, '.reprise/workspaces/one') });
    const { path } = (await make(lab, 'two', { path: join(lab.root, '.reprise/workspaces/two') })).workspace;
    expect(existsSync(join(path, '.env'))).toBe(true);
    expect(existsSync(join(path, '.reprise'))).toBe(false);
  });
});

describe('several processes', () => {
  it('create and remove 24 workspaces in parallel', async () => {
    const lab = new Lab();
    const before = lab.fingerprint();
    for (let round = 0; round < 3; round++) {
      const workers = ['a', 'b'].map(
        name => new Worker({ task: 'worktrees', root: lab.root, name: `${name}${round}`, rounds: 12 }),
      );
      await Promise.all(workers.map(each => each.printed(1)));
      for (const each of workers) each.start();
      await Promise.all(workers.map(each => each.printed(2)));
      expect(await listWorkspaces(await lab.open())).toHaveLength(24);
      for (const each of workers) each.start();
      await Promise.all(workers.map(each => each.done()));
      for (const each of workers) expect(each.said('removed')).toEqual([Array(12).fill('deleted')]);
    }
    expect(lab.git('worktree', 'list').split('\n')).toHaveLength(1);
    expect(lab.git('branch', '--list')).toBe('* main');
    expect(lab.fingerprint()).toEqual(before);
  });

  it('resume after one of them was killed, with all its commits', async () => {
    const lab = new Lab();
    for (const lines of [2, 4, 6, 9, 12]) {
      const victim = new Worker({ task: 'make', root: lab.root, name: 'w', rounds: 8 });
      await victim.printed(1);
      victim.start();
      await victim.printed(Math.min(lines, 17));
      await victim.kill();
    }
    const survivor = new Worker({ task: 'make', root: lab.root, name: 'w', rounds: 8 });
    await runTogether([survivor]);
    expect(await listWorkspaces(await lab.open())).toHaveLength(8);
    lab.git('fsck', '--strict');
  });
});
