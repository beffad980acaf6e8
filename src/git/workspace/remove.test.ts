import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../../process/program.ts';
import { land } from '../landing/advance.ts';
import { openRepository } from '../repository.ts';
import { Lab, plainEnvironment } from '../test-support.ts';
import { commitAll } from './commit.ts';
import { createWorkspace } from './create.ts';
import { removeWorkspace } from './remove.ts';

async function lab(name = 'one') {
  const lab = new Lab();
  const repository = await lab.open();
  const { owner } = lab;
  const branch = `reprise/w/${name}`;
  const path = lab.workspace(name);
  const make = () => createWorkspace({ repository, owner, path, base: 'main', branch });
  const { workspace } = await make();
  return {
    lab,
    repository,
    owner,
    branch,
    path: workspace.path,
    make,
    remove: () => removeWorkspace({ repository, owner, path }),
    branches: () => lab.git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n'),
  };
}

describe('removing a workspace', () => {
  it('deletes an empty branch, and is idempotent', async () => {
    const { path, remove, branches, branch } = await lab();
    expect(await remove()).toMatchObject({
      kind: 'removed',
      branch: { kind: 'deleted', branch },
      parked: undefined,
    });
    expect(existsSync(path)).toBe(false);
    expect(branches()).toEqual(['main']);
    expect(await remove()).toEqual({ kind: 'removed', branch: undefined, parked: undefined });
  });

  it('deletes the branch that a killed process left after it removed the folder', async () => {
    const { lab: room, repository, owner, path, branch, branches } = await lab();
    room.git('worktree', 'remove', '--force', '--force', path);
    expect(branches()).toEqual(['main', branch]);
    expect(await removeWorkspace({ repository, owner, path, branch })).toMatchObject({
      kind: 'removed',
      branch: { kind: 'deleted', branch },
    });
    expect(branches()).toEqual(['main']);
  });

  it('is finished by the next call if git was killed after it had deleted the lock of the worktree', async () => {
    const { lab: room, owner, path, branch, branches } = await lab();
    const gitDir = room.gitAt(path, 'rev-parse', '--absolute-git-dir');
    const killed = await openRepository({
      cwd: room.root,
      inheritEnv: plainEnvironment,
      runProgram: async (argv, options) => {
        if (!argv.includes('remove')) return runProgram(argv, options);
        rmSync(path, { recursive: true });
        rmSync(join(gitDir, 'locked'));
        throw new Error('killed');
      },
    });
    await expect(removeWorkspace({ repository: killed, owner, path, branch })).rejects.toThrow('killed');
    expect(room.git('worktree', 'list').split('\n')).toHaveLength(2);
    const repository = await room.open();
    expect(await removeWorkspace({ repository, owner, path, branch })).toMatchObject({ kind: 'removed' });
    expect(room.git('worktree', 'list').split('\n')).toHaveLength(1);
    expect(branches()).toEqual(['main']);
  });

  it('removes the locks that git left when it was killed while it deleted another branch, and no others', async () => {
    const { lab: room, owner, path, branch, branches } = await lab();
    const locks = ['packed-refs.lock', `refs/heads/${branch}.lock`].map(name =>
      join(room.root, '.git', name),
    );
    const repository = await room.open();
    const other = { repository, owner, path: room.workspace('two'), branch: 'reprise/w/two' };
    await createWorkspace({ ...other, base: 'main' });
    const killed = await openRepository({
      cwd: room.root,
      inheritEnv: plainEnvironment,
      runProgram: async (argv, options) => {
        if (argv.includes('remove')) return new Promise(() => {});
        if (!argv.includes('update-ref')) return runProgram(argv, options);
        room.git('update-ref', '-d', `refs/heads/${branch}`);
        for (const lock of locks) writeFileSync(lock, '');
        throw new Error('killed');
      },
    });
    await expect(removeWorkspace({ repository: killed, owner, path, branch })).rejects.toThrow('killed');
    expect(await removeWorkspace(other)).toMatchObject({ branch: { kind: 'deleted' } });
    expect(await removeWorkspace({ repository, owner, path, branch })).toMatchObject({ kind: 'removed' });
    expect(locks.filter(existsSync)).toEqual([]);
    expect(branches()).toEqual(['main']);
    expect(room.git('worktree', 'list').split('\n')).toHaveLength(1);
  });

  it('keeps a lock that another git command holds, and the branch with it', async () => {
    const { lab: room, path, remove, branch } = await lab();
    const lock = join(room.root, '.git', 'packed-refs.lock');
    writeFileSync(lock, '');
    const why = 'locked by a git command';
    expect(await remove()).toMatchObject({ kind: 'removed', branch: { kind: 'kept', branch, why } });
    expect([existsSync(lock), existsSync(path)]).toEqual([true, false]);
  });

  it('keeps a branch with commits that exist nowhere else, and returns its name', async () => {
    const { lab: room, path, remove, branches, branch } = await lab();
    room.commit(path, 'b.txt', 'b\n');
    room.commit(path, 'c.txt', 'c\n');
    expect(await remove()).toMatchObject({
      kind: 'removed',
      branch: { kind: 'kept', branch, commits: 2, why: 'unlanded commits' },
    });
    expect(branches()).toEqual(['main', branch]);
  });

  it('deletes a branch whose commits are on another branch, but not the last such branch', async () => {
    const first = await lab();
    const { lab: room, repository, owner, branch, path } = first;
    room.commit(path, 'b.txt', 'b\n');
    const second = { repository, owner, path: room.workspace('two') };
    await createWorkspace({ ...second, base: branch, branch: 'reprise/w/two' });
    expect(await first.remove()).toMatchObject({ branch: { kind: 'deleted' } });
    expect(await removeWorkspace(second)).toMatchObject({ branch: { kind: 'kept', commits: 1 } });
  });

  it('deletes a branch that landed as other commits, unless it has new ones', async () => {
    const landed = await lab();
    const { lab: room, repository, owner, branch, path } = landed;
    room.commit(path, 'b.txt', 'b\n');
    room.commit(room.root, 'main.txt', 'main moved\n');
    const request = { repository, owner, source: { branch }, onto: 'main' };
    expect(await land(request)).toMatchObject({ kind: 'landed' });
    room.commit(path, 'c.txt', 'c\n');
    expect(await landed.remove()).toMatchObject({ branch: { kind: 'kept', commits: 2 } });
    expect(await land(request)).toMatchObject({ kind: 'landed', subjects: ['Write c.txt'] });
    await landed.make();
    expect(await landed.remove()).toMatchObject({ branch: { kind: 'deleted' } });
    expect(landed.branches()).toEqual(['main']);
  });

  it('keeps a landed branch if main was reset afterwards', async () => {
    const { lab: room, repository, owner, branch, path, remove } = await lab();
    room.commit(path, 'b.txt', 'b\n');
    const before = room.commit(room.root, 'main.txt', 'main moved\n');
    await land({ repository, owner, source: { branch }, onto: 'main' });
    room.git('reset', '--quiet', '--hard', before);
    expect(await remove()).toMatchObject({ branch: { kind: 'kept', commits: 1 } });
  });

  it('is refused until all changes are committed', async () => {
    const { lab: room, repository, path, remove, branches, branch } = await lab();
    room.write('a.txt', 'changed\n', path);
    room.write('sub/new file.txt', 'new\n', path);
    expect(await remove()).toEqual({ kind: 'uncommitted-changes', files: ['a.txt', 'sub/new file.txt'] });
    expect(existsSync(join(path, 'sub/new file.txt'))).toBe(true);
    await commitAll({
      git: repository.git.with({ cwd: path }),
      message: 'Left over',
      author: { name: 'Agent', email: 'agent@example.com' },
      at: '2026-01-02T00:00:00.000Z',
    });
    expect(await remove()).toMatchObject({ branch: { kind: 'kept', commits: 1 } });
    expect(branches()).toContain(branch);
    expect(room.git('show', `${branch}:sub/new file.txt`)).toBe('new');
  });

  it('parks commits of a detached HEAD', async () => {
    const { lab: room, path, remove, branch } = await lab();
    room.gitAt(path, 'checkout', '--quiet', '--detach');
    const commit = room.commit(path, 'b.txt', 'b\n');
    const removal = await remove();
    expect(removal).toMatchObject({ branch: { kind: 'deleted', branch }, parked: { commit, commits: 1 } });
    const parked = removal.kind === 'removed' ? removal.parked?.branch : undefined;
    expect(parked).toMatch(/^reprise\/parked\//);
    expect(room.git('rev-parse', `refs/heads/${parked}`)).toBe(commit);
  });

  it('parks commits of a detached HEAD even if the folder was deleted', async () => {
    const { lab: room, path, remove } = await lab();
    room.gitAt(path, 'checkout', '--quiet', '--detach');
    const commit = room.commit(path, 'b.txt', 'b\n');
    rmSync(path, { recursive: true });
    expect(await remove()).toMatchObject({ parked: { commit } });
    expect(room.git('worktree', 'list').split('\n')).toHaveLength(1);
  });

  it("is refused for the user's checkout", async () => {
    const { lab: room, repository, owner } = await lab();
    await expect(removeWorkspace({ repository, owner, path: room.root })).rejects.toMatchObject({
      code: 'WORKSPACE_FAILED',
      message: `${room.root} is not a workspace that Reprise made`,
    });
    expect(existsSync(join(room.root, 'a.txt'))).toBe(true);
  });

  it('keeps branches that an agent created', async () => {
    const { lab: room, path, remove, branches, branch } = await lab();
    room.gitAt(path, 'switch', '--quiet', '--create', 'idea');
    room.commit(path, 'b.txt', 'b\n');
    expect(await remove()).toMatchObject({ branch: { kind: 'deleted', branch } });
    expect(branches()).toEqual(['idea', 'main']);
  });
});

describe('committing leftover changes', () => {
  const leftOver = {
    message: '-m "x"\n\n# kept\n',
    author: { name: 'Agent', email: 'a@b' },
    at: '2026-01-02T03:04:05.678Z',
  };

  it('includes new, changed and deleted files, with the given author and time', async () => {
    const { lab: room, repository, path } = await lab();
    room.write('ünï cödé.txt', 'new\n', path);
    rmSync(join(path, 'a.txt'));
    room.write('.git-hooks', '', path);
    const git = repository.git.with({ cwd: path });
    const result = await commitAll({ git, ...leftOver });
    expect(result).toMatchObject({ kind: 'committed', commit: room.gitAt(path, 'rev-parse', 'HEAD') });
    expect(room.gitAt(path, 'log', '-1', '--format=%an %ae %cn %at %ct%n%B')).toBe(
      'Agent a@b Agent 1767323045 1767323045\n-m "x"\n\n# kept',
    );
    expect(room.gitAt(path, 'status', '--porcelain')).toBe('');
    expect(await commitAll({ git, ...leftOver })).toMatchObject({ kind: 'clean' });
  });

  it('is refused while conflicts are unresolved', async () => {
    const { lab: room, repository, path } = await lab();
    room.commit(path, 'a.txt', 'ours\n');
    room.commit(room.root, 'a.txt', 'theirs\n');
    expect(() => room.gitAt(path, 'merge', 'main')).toThrow();
    const git = repository.git.with({ cwd: path });
    await expect(commitAll({ git, ...leftOver })).rejects.toThrow(/a merge in .* is unfinished: a.txt/);
  });

  it('is refused if the workspace contains another repository', async () => {
    const { lab: room, repository, path, remove } = await lab();
    room.gitAt(path, 'init', '--quiet', 'inner');
    room.write('inner/x.txt', 'x\n', path);
    const git = repository.git.with({ cwd: path });
    await expect(commitAll({ git, ...leftOver })).rejects.toThrow('there is another repository');
    expect(await remove()).toMatchObject({ kind: 'uncommitted-changes' });
  });
});
