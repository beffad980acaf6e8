import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { changeCounts } from '../diff.ts';
import type { Git } from '../git.ts';
import { labWithWork } from '../test-support.ts';
import { commitAll } from './commit.ts';
import { gitInside } from './entries.ts';

const details = {
  message: 'Left over',
  author: { name: 'Agent', email: 'agent@example.com' },
  at: '2026-01-02T03:04:05.678Z',
};

/** A worktree on the branch `work`. */
async function commitLab() {
  const { lab, work } = labWithWork();
  const git = gitInside(await lab.open(), work);
  const index = lab.gitAt(work, 'rev-parse', '--path-format=absolute', '--git-path', 'index');
  const base = lab.git('rev-parse', 'main');
  const commit = () => commitAll({ git, since: base, ...details });
  return { lab, work, git, base, index, commit };
}

/** Behaves as if this process were killed before it has written anything to a command. */
const silenced = (git: Git): Git => ({
  ...git,
  with: changes => silenced(git.with(changes)),
  run: (args, options) => git.run(args, options?.input === undefined ? options : { ...options, input: '' }),
});

/** Notes the name of every command that runs. */
function counted(git: Git, commands: string[]): Git {
  const noted = (args: readonly string[]) => {
    commands.push(args.find((word, at) => word !== '-c' && args[at - 1] !== '-c') ?? '');
    return args;
  };
  return {
    ...git,
    with: changes => counted(git.with(changes), commands),
    run: (args, options) => git.run(noted(args), options),
    ok: (args, options) => git.ok(noted(args), options),
    line: (args, options) => git.line(noted(args), options),
  };
}

describe('committing a worktree', () => {
  it('makes no commit without its message', async () => {
    const { lab, work } = labWithWork();
    lab.write('new.txt', 'new\n', work);
    const git = silenced(gitInside(await lab.open(), work));
    const before = lab.gitAt(work, 'rev-parse', 'HEAD');
    await expect(commitAll({ git, ...details })).rejects.toThrow('empty commit message');
    expect(lab.gitAt(work, 'rev-parse', 'HEAD')).toBe(before);
  });

  it('returns the parent of the commit and the number of changes', async () => {
    const { lab, work, base, commit } = await commitLab();
    lab.write('a.txt', 'one\ntwo\n', work);
    lab.write('new.txt', 'new\n', work);
    expect(await commit()).toEqual({
      kind: 'committed',
      commit: lab.gitAt(work, 'rev-parse', 'HEAD'),
      branch: 'work',
      parent: base,
      changes: { files: 2, insertions: 2, deletions: 0 },
    });
    expect(lab.gitAt(work, 'status', '--porcelain')).toBe('');
    expect(lab.gitAt(work, 'log', '-1', '--format=%an %s')).toBe('Agent Left over');
    expect(await commit()).toMatchObject({ kind: 'clean' });
  });

  it('commits a change made in the second of the checkout that keeps the size', async () => {
    const { lab, work, index, commit } = await commitLab();
    const file = join(work, 'a.txt');
    const then = 1_000_000_000;
    lab.git('config', 'core.trustctime', 'false');
    utimesSync(file, then, then);
    lab.gitAt(work, 'update-index', '--refresh');
    writeFileSync(file, 'two\n');
    utimesSync(file, then, then);
    utimesSync(index, then, then);
    expect(await commit()).toMatchObject({ kind: 'committed' });
    expect(lab.gitAt(work, 'show', 'HEAD:a.txt')).toBe('two');
  });

  it('leaves an index in which git notices a change made right afterwards', async () => {
    const { lab, work, commit } = await commitLab();
    lab.write('b.txt', 'one\n', work);
    expect(await commit()).toMatchObject({ kind: 'committed' });
    const { atime, mtime } = statSync(join(work, 'a.txt'));
    lab.git('config', 'core.trustctime', 'false');
    writeFileSync(join(work, 'a.txt'), 'two\n');
    utimesSync(join(work, 'a.txt'), atime, mtime);
    expect(lab.gitAt(work, 'status', '--porcelain').trim()).toBe('M a.txt');
    expect(await commit()).toMatchObject({ kind: 'committed' });
  });

  it('commits staged, deleted, renamed and newly executable files', async () => {
    const { lab, work, commit } = await commitLab();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(work, 'c.txt', 'c\n');
    lab.write('staged.txt', 'staged\n', work);
    lab.gitAt(work, 'add', 'staged.txt');
    lab.gitAt(work, 'mv', 'b.txt', 'renamed.txt');
    rmSync(join(work, 'c.txt'));
    chmodSync(join(work, 'a.txt'), 0o755);
    expect(await commit()).toMatchObject({ kind: 'committed', branch: 'work' });
    expect(lab.gitAt(work, 'ls-tree', '-r', '--format=%(objectmode) %(path)', 'HEAD').split('\n')).toEqual([
      '100755 a.txt',
      '100644 renamed.txt',
      '100644 staged.txt',
    ]);
    expect(lab.gitAt(work, 'status', '--porcelain')).toBe('');
  });

  it('commits changes that are only staged, and ignores a file that was only touched', async () => {
    const { lab, work, commit } = await commitLab();
    lab.write('staged.txt', 'staged\n', work);
    lab.gitAt(work, 'add', 'staged.txt');
    expect(await commit()).toMatchObject({ kind: 'committed' });
    lab.write('a.txt', 'one\n', work);
    expect(await commit()).toMatchObject({ kind: 'clean', branch: 'work' });
  });

  it('refuses unresolved conflicts and does not change the index', async () => {
    const { lab, work, index, commit } = await commitLab();
    lab.commit(work, 'a.txt', 'ours\n');
    lab.commit(lab.root, 'a.txt', 'theirs\n');
    expect(() => lab.gitAt(work, 'merge', '--quiet', 'main')).toThrow();
    lab.write('new.txt', 'new\n', work);
    const before = readFileSync(index);
    await expect(commit()).rejects.toThrow('a merge');
    expect(readFileSync(index)).toEqual(before);
  });

  it('returns no single parent for a merge', async () => {
    const { lab, work, commit } = await commitLab();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'c.txt', 'c\n');
    lab.gitAt(work, 'merge', '--quiet', '--no-commit', 'main');
    expect(await commit()).toMatchObject({ kind: 'committed', parent: undefined });
    expect(lab.gitAt(work, 'log', '-1', '--format=%P').split(' ')).toHaveLength(2);
  });

  it('commits on a detached HEAD', async () => {
    const { lab, work, commit } = await commitLab();
    lab.gitAt(work, 'checkout', '--quiet', '--detach');
    lab.write('new.txt', 'new\n', work);
    expect(await commit()).toMatchObject({
      commit: lab.gitAt(work, 'rev-parse', 'HEAD'),
      branch: undefined,
    });
  });

  it('refuses another repository and does not change the index', async () => {
    const { lab, work, index, commit } = await commitLab();
    lab.gitAt(work, 'init', '--quiet', 'inner');
    lab.commit(join(work, 'inner'), 'x.txt', 'x\n');
    lab.write('new.txt', 'new\n', work);
    const before = readFileSync(index);
    await expect(commit()).rejects.toThrow('there is another repository');
    expect(readFileSync(index)).toEqual(before);
  });

  it('respects the lock of another git command', async () => {
    const { lab, work, index, commit } = await commitLab();
    lab.write('new.txt', 'new\n', work);
    writeFileSync(`${index}.lock`, '');
    const { ino } = statSync(index);
    await expect(commit()).rejects.toMatchObject({ code: 'GIT_FAILED' });
    expect(statSync(index).ino).toBe(ino);
    expect(existsSync(`${index}.lock`)).toBe(true);
  });

  it('commits what a process had staged when it was killed', async () => {
    const { lab, work, commit } = await commitLab();
    lab.write('new.txt', 'new\n', work);
    lab.gitAt(work, 'add', '--all');
    lab.write('newer.txt', 'newer\n', work);
    expect(await commit()).toMatchObject({ kind: 'committed', changes: { files: 2 } });
    expect(lab.gitAt(work, 'status', '--porcelain')).toBe('');
  });

  it('runs no hooks', async () => {
    const { lab, work, commit } = await commitLab();
    for (const name of ['pre-commit', 'commit-msg', 'post-commit', 'reference-transaction'])
      writeFileSync(join(lab.root, '.git/hooks', name), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    lab.write('new.txt', 'new\n', work);
    expect(await commit()).toMatchObject({ kind: 'committed' });
  });

  it('runs three commands, and only one if nothing has changed', async () => {
    const { lab, work, git } = await commitLab();
    const commands: string[] = [];
    const counting = counted(git, commands);
    const { commonDir } = await lab.open();
    await commitAll({ git: counting, commonDir, ...details });
    lab.write('new.txt', 'new\n', work);
    const { commit } = await commitAll({ git: counting, commonDir, ...details });
    expect(commands).toEqual(['status', 'status', 'add', 'commit']);
    expect(commit).toBe(lab.gitAt(work, 'rev-parse', 'HEAD'));
  });
});

describe('the number of changes', () => {
  const lines = (count: number, word: string) =>
    Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join('');

  it.each([
    ['a rewritten file', (work: string) => writeFileSync(join(work, 'long.txt'), lines(80, 'new'))],
    ['a renamed file', (work: string) => renameSync(join(work, 'long.txt'), join(work, 'moved.txt'))],
    ['a deleted file', (work: string) => rmSync(join(work, 'long.txt'))],
    ['a file made executable', (work: string) => chmodSync(join(work, 'long.txt'), 0o755)],
    ['a binary file', (work: string) => writeFileSync(join(work, 'long.txt'), Buffer.alloc(3000, '\0x'))],
  ])('matches git diff for %s', async (_, change) => {
    const { lab, work, git } = await commitLab();
    writeFileSync(join(work, 'long.txt'), lines(80, 'old'));
    lab.gitAt(work, 'add', '--all');
    lab.gitAt(work, 'commit', '--quiet', '--message=Long');
    const since = lab.gitAt(work, 'rev-parse', 'HEAD');
    change(work);
    const committed = await commitAll({ git, since, ...details });
    if (committed.kind !== 'committed') throw new Error('nothing was committed');
    const said = await changeCounts(git, since);
    expect(committed.changes ?? said).toEqual(said);
    expect(said.files).toBe(1);
  });
});
