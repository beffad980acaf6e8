import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openRepository } from '../repository.ts';
import { labWithWork, landIn, plainEnvironment } from '../test-support.ts';

describe('a landing', () => {
  it('fast-forwards the target and its checkout', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const from = lab.git('rev-parse', 'main');
    expect(await landIn(lab)).toEqual({
      kind: 'landed',
      target: 'main',
      commit,
      from,
      commits: [{ commit, subject: 'Write b.txt' }],
      subjects: ['Write b.txt'],
      checkout: lab.root,
      token: 1,
      wasAlone: true,
    });
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(readFileSync(join(lab.root, 'b.txt'), 'utf8')).toBe('b\n');
    expect(await landIn(lab)).toEqual({ kind: 'nothing-to-land', target: 'main', commit });
  });

  it('rebases the work onto a target that has moved, and keeps authors, dates and messages', async () => {
    const { lab, work } = labWithWork();
    lab.write('b.txt', 'b\n', work);
    lab.gitAt(work, 'add', '--all');
    const message = 'Ünïcode subject\n\n  indented\n# not a comment\n\nSigned-off-by: x';
    const author = '--author=Bob <bob@example.com>';
    lab.gitAt(
      work,
      'commit',
      '--quiet',
      author,
      '--date=@1000000000 +0130',
      '--cleanup=verbatim',
      '-m',
      message,
    );
    lab.commit(work, 'c.txt', 'c\n');
    const main = lab.commit(lab.root, 'main.txt', 'main\n');
    const tip = lab.git('rev-parse', 'work');
    expect(await landIn(lab)).toMatchObject({
      kind: 'landed',
      from: main,
      subjects: ['Ünïcode subject', 'Write c.txt'],
    });
    expect(lab.git('log', '-1', '--format=%an %ae %ad%n%B', '--date=raw', 'main~1')).toBe(
      `Bob bob@example.com 1000000000 +0130\n${message}`,
    );
    expect(lab.git('rev-parse', 'main~2')).toBe(main);
    expect(lab.git('rev-parse', 'work')).toBe(tip);
    lab.git('fsck', '--strict');
  });

  it('keeps the encoding of commit messages', async () => {
    const { lab, work } = labWithWork();
    writeFileSync(join(lab.folder, 'message'), Buffer.from('caf\u00e9', 'latin1'));
    const options = ['--quiet', '--allow-empty', `--file=${join(lab.folder, 'message')}`];
    lab.gitAt(work, '-c', 'i18n.commitEncoding=ISO-8859-1', 'commit', ...options);
    lab.commit(lab.root, 'main.txt', 'main\n');
    expect(await landIn(lab)).toMatchObject({ kind: 'landed', subjects: ['café'] });
  });

  it('creates the same commits for the same work on the same target', async () => {
    const results = [];
    for (let round = 0; round < 2; round++) {
      const { lab, work } = labWithWork();
      lab.commit(work, 'b.txt', 'b\n');
      lab.commit(lab.root, 'main.txt', 'main\n');
      results.push(await landIn(lab));
    }
    expect(results[0]).toMatchObject({ kind: 'landed' });
    const commits = results.map(result => ('commit' in result ? result.commit : undefined));
    expect(commits[0]).toBe(commits[1]);
  });

  it('finds nothing to land if the target already has the same changes', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    const main = lab.commit(lab.root, 'b.txt', 'b\n');
    expect(await landIn(lab)).toEqual({ kind: 'nothing-to-land', target: 'main', commit: main });
  });

  it('names the files that conflict, and changes nothing', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    const tip = lab.commit(work, 'a.txt', 'theirs\n');
    const main = lab.commit(lab.root, 'a.txt', 'ours\n');
    const before = lab.fingerprint();
    expect(await landIn(lab)).toEqual({
      kind: 'conflict',
      target: 'main',
      files: ['a.txt'],
      subject: 'Write a.txt',
      onto: main,
      why: 'cannot rebase "Write a.txt" onto main: conflicts in a.txt',
      hint: `resolve the conflicts, then land again: git -C '${work}' rebase main`,
    });
    expect(lab.fingerprint()).toEqual(before);
    expect(lab.git('rev-parse', 'work')).toBe(tip);
  });

  it('keeps conflict resolutions of merges in the work', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'a.txt', 'theirs\n');
    lab.commit(lab.root, 'a.txt', 'ours\n');
    expect(() => lab.gitAt(work, 'merge', '--quiet', 'main')).toThrow();
    lab.write('a.txt', 'both\n', work);
    lab.gitAt(work, 'commit', '--quiet', '--all', '--message=Merge main');
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    expect(await landIn(lab)).toMatchObject({ kind: 'landed', subjects: ['Write a.txt'] });
    expect(lab.git('show', 'main:a.txt')).toBe('both');
    expect(lab.git('show', 'main:b.txt')).toBe('b');
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
  });

  it('lands a commit without a branch, even from an unrelated history', async () => {
    const { lab, work } = labWithWork();
    lab.gitAt(work, 'checkout', '--quiet', '--orphan', 'other');
    lab.gitAt(work, 'rm', '-r', '--quiet', '--force', '.');
    const commit = lab.commit(work, 'b.txt', 'b\n');
    expect(await landIn(lab, { source: { commit } })).toMatchObject({
      kind: 'landed',
      subjects: ['Write b.txt'],
    });
    expect(lab.git('ls-tree', '--name-only', 'main')).toBe('a.txt\nb.txt');
  });

  it('explains how to resolve a conflict even if the source is not checked out', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'a.txt', 'theirs\n');
    lab.gitAt(work, 'switch', '--quiet', '--detach');
    lab.commit(lab.root, 'a.txt', 'ours\n');
    const again = 'resolve the conflicts, then land again:';
    expect(await landIn(lab)).toMatchObject({ hint: `${again} git switch work && git rebase main` });
    expect(await landIn(lab, { source: { commit } })).toMatchObject({
      hint: `${again} git switch --create work ${commit} && git rebase main`,
    });
  });
});

describe('the target', () => {
  it('may be in a bare repository', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const bare = join(lab.folder, 'bare.git');
    lab.git('clone', '--quiet', '--bare', lab.root, bare);
    const repository = await openRepository({ cwd: bare, inheritEnv: plainEnvironment });
    expect(await landIn(lab, { repository })).toMatchObject({ kind: 'landed', commit, checkout: undefined });
    expect(lab.gitAt(bare, 'rev-parse', 'main')).toBe(commit);
  });

  it('may have another name, and must exist', async () => {
    const { lab, work } = labWithWork();
    lab.git('branch', '--move', 'main', 'master');
    lab.commit(work, 'b.txt', 'b\n');
    await expect(landIn(lab)).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: 'there is no branch main to land on',
      hint: 'land on the current branch, master, or create the missing one: git branch main',
    });
    expect(await landIn(lab, { onto: 'master' })).toMatchObject({ kind: 'landed' });
  });

  it('must have at least one commit', async () => {
    const { lab } = labWithWork();
    lab.git('update-ref', '-d', 'refs/heads/main');
    await expect(landIn(lab)).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: 'main has no commit yet',
    });
  });

  it.each(['--all', '-x', 'a b', '../main', 'HEAD', 'no/such', ''])(
    'cannot be %j, nor can the source',
    async name => {
      const { lab } = labWithWork();
      await expect(landIn(lab, { onto: name })).rejects.toMatchObject({ code: 'CANNOT_LAND' });
      await expect(landIn(lab, { source: { branch: name } })).rejects.toMatchObject({ code: 'CANNOT_LAND' });
    },
  );
});
