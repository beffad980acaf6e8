import {
  chmodSync,
  readdirSync,
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
import { gitInside, privateGitDir } from './entries.ts';

const details = {
  message: 'Left over',
  author: { name: 'Agent', email: 'agent@example.com' },
  at: '2026-01-02T03:04:05.678Z',
};

/** A worktree on the branch `work` whose git folder is known. */
async function known() {
  const { lab, work } = labWithWork();
  const repository = await lab.open();
  const gitDir = privateGitDir(work) ?? '';
  const base = lab.git('rev-parse', 'main');
  const commit = () =>
    commitAll({
      git: gitInside(repository, work),
      folders: { gitDir, commonDir: repository.commonDir },
      since: base,
      ...details,
    });
  const own = () => readdirSync(gitDir).filter(name => name.startsWith('reprise-'));
  return { lab, work, gitDir, base, index: join(gitDir, 'index'), commit, own };
}

/** As if this process were killed before it has written anything to a command. */
const silenced = (git: Git): Git => ({
  ...git,
  with: changes => silenced(git.with(changes)),
  run: (args, options) => git.run(args, options?.input === undefined ? options : { ...options, input: '' }),
});

describe('committing with the git folder at hand', () => {
  it('makes no commit without its message', async () => {
    const { lab, work } = labWithWork();
    lab.write('new.txt', 'new\n', work);
    const git = silenced(gitInside(await lab.open(), work));
    const before = lab.gitAt(work, 'rev-parse', 'HEAD');
    await expect(commitAll({ git, ...details })).rejects.toThrow('empty commit message');
    expect(lab.gitAt(work, 'rev-parse', 'HEAD')).toBe(before);
  });

  it('says what the commit stands on and how much has changed', async () => {
    const { lab, work, base, commit, own } = await known();
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
    expect(own()).toEqual([]);
    expect(await commit()).toMatchObject({ kind: 'clean' });
  });

  it('does not miss a change in the second of the checkout that left the size as it was', async () => {
    const { lab, work, index, commit } = await known();
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

  it('leaves an index in which a change right after it is seen', async () => {
    const { lab, work, commit } = await known();
    lab.write('b.txt', 'one\n', work);
    expect(await commit()).toMatchObject({ kind: 'committed' });
    const { atime, mtime } = statSync(join(work, 'a.txt'));
    lab.git('config', 'core.trustctime', 'false');
    writeFileSync(join(work, 'a.txt'), 'two\n');
    utimesSync(join(work, 'a.txt'), atime, mtime);
    expect(lab.gitAt(work, 'status', '--porcelain').trim()).toBe('M a.txt');
    expect(await commit()).toMatchObject({ kind: 'committed' });
  });

  it('commits what was staged before, deleted, renamed and made a program, and nothing else', async () => {
    const { lab, work, commit } = await known();
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

  it('commits what is only staged, and finds nothing in what was only touched', async () => {
    const { lab, work, commit } = await known();
    lab.write('staged.txt', 'staged\n', work);
    lab.gitAt(work, 'add', 'staged.txt');
    expect(await commit()).toMatchObject({ kind: 'committed' });
    lab.write('a.txt', 'one\n', work);
    expect(await commit()).toMatchObject({ kind: 'clean', branch: 'work' });
  });

  it('refuses conflicts, and leaves them as they are', async () => {
    const { lab, work, index, commit } = await known();
    lab.commit(work, 'a.txt', 'ours\n');
    lab.commit(lab.root, 'a.txt', 'theirs\n');
    expect(() => lab.gitAt(work, 'merge', '--quiet', 'main')).toThrow();
    lab.write('new.txt', 'new\n', work);
    const before = readFileSync(index);
    await expect(commit()).rejects.toThrow('a merge');
    expect(readFileSync(index)).toEqual(before);
  });

  it('names no single parent for the end of a merge', async () => {
    const { lab, work, commit } = await known();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'c.txt', 'c\n');
    lab.gitAt(work, 'merge', '--quiet', '--no-commit', 'main');
    expect(await commit()).toMatchObject({ kind: 'committed', parent: undefined });
    expect(lab.gitAt(work, 'log', '-1', '--format=%P').split(' ')).toHaveLength(2);
  });

  it('knows the commit of a HEAD that is on no branch', async () => {
    const { lab, work, commit } = await known();
    lab.gitAt(work, 'checkout', '--quiet', '--detach');
    lab.write('new.txt', 'new\n', work);
    expect(await commit()).toMatchObject({
      commit: lab.gitAt(work, 'rev-parse', 'HEAD'),
      branch: undefined,
    });
  });

  it('leaves the index as it is if it refuses', async () => {
    const { lab, work, index, commit, own } = await known();
    lab.gitAt(work, 'init', '--quiet', 'inner');
    lab.commit(join(work, 'inner'), 'x.txt', 'x\n');
    lab.write('new.txt', 'new\n', work);
    const before = readFileSync(index);
    await expect(commit()).rejects.toThrow('there is another repository');
    expect(readFileSync(index)).toEqual(before);
    expect(own()).toEqual([]);
  });

  it('takes no index away from somebody who has locked it', async () => {
    const { lab, work, index, commit, own } = await known();
    lab.write('new.txt', 'new\n', work);
    writeFileSync(`${index}.lock`, '');
    const { ino } = statSync(index);
    await expect(commit()).rejects.toMatchObject({ code: 'GIT_FAILED' });
    expect(statSync(index).ino).toBe(ino);
    expect(readdirSync(join(index, '..'))).toContain('index.lock');
    expect(own()).toEqual([]);
  });

  it('goes on where a process was killed in the middle of it', async () => {
    const { lab, work, gitDir, commit, own } = await known();
    for (const name of ['reprise-index', 'reprise-commit-index']) {
      writeFileSync(join(gitDir, name), 'half of an ind');
      writeFileSync(join(gitDir, `${name}.lock`), '');
    }
    lab.write('new.txt', 'new\n', work);
    expect(await commit()).toMatchObject({ kind: 'committed' });
    expect(own()).toEqual([]);
  });
});

describe('how much has changed', () => {
  const lines = (count: number, word: string) =>
    Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join('');

  it.each([
    [
      'a file that was written anew',
      (work: string) => writeFileSync(join(work, 'long.txt'), lines(80, 'new')),
    ],
    [
      'a file that was renamed',
      (work: string) => renameSync(join(work, 'long.txt'), join(work, 'moved.txt')),
    ],
    ['a file that was removed', (work: string) => rmSync(join(work, 'long.txt'))],
    ['a file that was made a program', (work: string) => chmodSync(join(work, 'long.txt'), 0o755)],
    ['a file of bytes', (work: string) => writeFileSync(join(work, 'long.txt'), Buffer.alloc(3000, '\0x'))],
  ])('by %s is what git diff says, if it is said', async (_, change) => {
    const { lab, work, gitDir } = await known();
    writeFileSync(join(work, 'long.txt'), lines(80, 'old'));
    lab.gitAt(work, 'add', '--all');
    lab.gitAt(work, 'commit', '--quiet', '--message=Long');
    const since = lab.gitAt(work, 'rev-parse', 'HEAD');
    const { commonDir, ...repository } = await lab.open();
    const git = gitInside({ commonDir, ...repository }, work);
    change(work);
    const committed = await commitAll({ git, folders: { gitDir, commonDir }, since, ...details });
    if (committed.kind !== 'committed') throw new Error('nothing was committed');
    const said = await changeCounts(git, since);
    expect(committed.changes ?? said).toEqual(said);
    expect(said.files).toBe(1);
  });
});
