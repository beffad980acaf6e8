import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { worktreeState } from '../delta/capture.ts';
import { land } from '../landing/advance.ts';
import { conflictLab } from '../test-support.ts';
import type { Resolution } from './progress.ts';
import { beginResolution } from './resolve.ts';

describe('a conflict', () => {
  it('is laid out with labelled markers on a detached HEAD, and the branch stays', async () => {
    const { lab, path, branch, begin } = await conflictLab({ 'a.txt': 'one\ntwo\nthree\n' });
    lab.commit(path, 'fits.txt', 'fits\n');
    lab.write('also.txt', 'also\n', path);
    const tip = lab.commit(path, 'a.txt', 'one\nwork\nthree\n');
    const onto = lab.commit(lab.root, 'a.txt', 'one\nmain\nthree\n');
    const resolution = await begin();
    const theirs = `${tip.slice(0, 10)} (Write a.txt)`;
    expect(resolution).toMatchObject({
      branch,
      tip,
      onto,
      commit: tip,
      subject: 'Write a.txt',
      isWhole: false,
      rest: [],
      files: [{ path: 'a.txt', kind: 'text', words: 'changed on both sides; markers show where' }],
      labels: { ours: 'main', theirs },
      dropped: [],
      parked: [],
    });
    expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe(
      `one\n<<<<<<< main\nmain\n=======\nwork\n>>>>>>> ${theirs}\nthree\n`,
    );
    expect(lab.gitAt(path, 'rev-parse', 'HEAD')).toBe(resolution.at);
    expect(lab.gitAt(path, 'rev-parse', `${resolution.at}~1`)).toBe(onto);
    expect(() => lab.gitAt(path, 'symbolic-ref', '--quiet', 'HEAD')).toThrow();
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe(' M a.txt\nA  also.txt');
    expect(lab.git('rev-parse', branch)).toBe(tip);
  });

  it('can be captured as the initial state of a session', async () => {
    const { lab, repository, path, begin } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const { at } = await begin();
    const state = await worktreeState({ repository, folder: path, objectsDir: join(lab.folder, 'objects') });
    expect(state.head).toEqual({ commit: at, branch: null });
    expect(state.index.tree).toBe(lab.git('rev-parse', `${at}^{tree}`));
    expect(state.tree).not.toBe(state.index.tree);
  });

  it('is resolved into the original commit with its author, followed by the rest of the branch', async () => {
    const { lab, path, branch, begin, proceed, state } = await conflictLab();
    lab.commit(path, 'before.txt', 'x\n');
    lab.write('a.txt', 'work\n', path);
    const message = 'Ünïcode subject\n\n  indented\n# not a comment\n';
    const author = ['--author=Bób <bob@example.com>', '--date=@1000000000 +0130'];
    lab.gitAt(path, 'commit', '--all', '--quiet', ...author, '--cleanup=verbatim', '-m', message);
    lab.commit(path, 'after.txt', 'y\n');
    const main = lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    const resolved = await proceed(resolution);
    const commit = lab.git('rev-parse', branch);
    expect(resolved).toEqual({ kind: 'resolved', branch, commit, dropped: [], parked: [] });
    expect(state()).toEqual([`refs/heads/${branch}`, commit, '']);
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe(
      'Write after.txt\nÜnïcode subject\nWrite before.txt',
    );
    expect(lab.git('log', '-1', '--format=%an %ae %ad|%cn %ce %cd%n%B', '--date=raw', `${branch}~1`)).toBe(
      `Bób bob@example.com 1000000000 +0130|Reprise reprise@localhost 1767225600 +0000\n${message.trimEnd()}`,
    );
    expect(lab.git('show', `${branch}:a.txt`)).toBe('both');
    expect(lab.git('rev-parse', `${branch}~3`)).toBe(main);
    lab.git('fsck', '--strict');
  });

  it('no longer stops the landing once it is resolved', async () => {
    const { lab, path, branch, begin, proceed, repository } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const landBranch = () => land({ repository, owner: lab.owner, source: { branch }, onto: 'main' });
    expect(await landBranch()).toMatchObject({ kind: 'conflict' });
    const resolution = await begin();
    expect(await landBranch()).toMatchObject({ kind: 'conflict' });
    lab.write('a.txt', 'both\n', path);
    await proceed(resolution);
    expect(await landBranch()).toMatchObject({ kind: 'landed', subjects: ['Write a.txt'] });
  });

  it('is followed by the next conflict of the branch', async () => {
    const { lab, path, branch, begin, proceed, state } = await conflictLab({
      'a.txt': 'a\n',
      'b c.txt': 'b\n',
    });
    lab.commit(path, 'a.txt', 'work a\n');
    lab.commit(path, 'b c.txt', 'work b\n');
    lab.commit(path, 'd.txt', 'd\n');
    lab.commit(lab.root, 'a.txt', 'main a\n');
    lab.commit(lab.root, 'b c.txt', 'main b\n');
    const first = await begin();
    expect(first.files.map(file => file.path)).toEqual(['a.txt']);
    lab.write('a.txt', 'both a\n', path);
    lab.write('new.txt', 'came with the solution\n', path);
    const second = await proceed(first);
    expect(second).toMatchObject({
      kind: 'conflict',
      resolution: { subject: 'Write b c.txt', files: [{ path: 'b c.txt' }], rest: [{}] },
    });
    if (second.kind !== 'conflict') return;
    lab.write('b c.txt', 'both b\n', path);
    expect(await proceed(second.resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe('Write d.txt\nWrite b c.txt\nWrite a.txt');
    expect(lab.git('show', '--format=', '--name-only', `${branch}~2`)).toBe('a.txt\nnew.txt');
    expect(state()[2]).toBe('');
  });

  it('gives the same commits for the same resolution', async () => {
    const commits: unknown[] = [];
    for (let round = 0; round < 2; round++) {
      const { lab, path, begin, proceed } = await conflictLab();
      lab.commit(path, 'a.txt', 'work\n');
      lab.commit(path, 'b.txt', 'b\n');
      lab.commit(lab.root, 'a.txt', 'main\n');
      const resolution = await begin();
      lab.write('a.txt', 'both\n', path);
      commits.push(resolution, await proceed(resolution));
    }
    expect(commits[2]).toEqual(commits[0]);
    expect(commits[3]).toEqual(commits[1]);
  });

  it('is not laid out if the branch no longer conflicts', async () => {
    const { lab, path, tryBegin } = await conflictLab();
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    expect(await tryBegin()).toEqual({ kind: 'fits' });
    expect(lab.gitAt(path, 'status', '--porcelain', '--branch')).toMatch(/^## reprise\//);
  });

  it('is resolved as one commit if the branch has merges', async () => {
    const { lab, path, branch, begin, proceed } = await conflictLab();
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'c.txt', 'c\n');
    lab.gitAt(path, 'merge', '--quiet', '--no-edit', 'main');
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    expect(resolution.isWhole).toBe(true);
    lab.write('a.txt', 'both\n', path);
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('log', '--format=%B', `main..${branch}`).trim()).toBe('Write b.txt\n\n- Write a.txt');
    expect(lab.git('ls-tree', '--name-only', branch)).toBe('a.txt\nb.txt\nc.txt');
  });
});

describe('a file that was in the workspace before', () => {
  it('stays if git does not track it, unless the commit contains it', async () => {
    const { lab, path, begin, proceed, state } = await conflictLab();
    writeFileSync(join(lab.root, '.git/info/exclude'), 'node_modules\n.env\n:forced\n');
    lab.commit(path, 'a.txt', 'work\n');
    lab.write(':forced', 'of the commit\n', path);
    lab.gitAt(path, 'add', '--force', './:forced');
    lab.gitAt(path, 'commit', '--quiet', '--amend', '--no-edit');
    lab.write('a.txt', 'main\n', lab.root);
    lab.write('.env', 'of main\n', lab.root);
    lab.git('add', '--force', '.env');
    lab.commit(lab.root, 'main.txt', 'x\n');
    lab.write('node_modules/x/index.js', 'x\n', path);
    lab.write('.env', 'of the workspace\n', path);
    const resolution = await begin();
    expect(readFileSync(join(path, 'node_modules/x/index.js'), 'utf8')).toBe('x\n');
    expect(readFileSync(join(path, '.env'), 'utf8')).toBe('of main\n');
    // Files of the commit are not lost if the agent resets the index.
    lab.gitAt(path, 'reset', '--quiet');
    lab.write('a.txt', 'both\n', path);
    await proceed(resolution);
    expect(lab.gitAt(path, 'ls-tree', '--name-only', 'HEAD')).toBe('.env\n:forced\na.txt\nmain.txt');
    expect(existsSync(join(path, 'node_modules/x/index.js'))).toBe(true);
    expect(state()[2]).toBe('');
  });

  it('is parked if it has uncommitted changes', async () => {
    const { lab, path, begin } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    lab.write('a.txt', 'not committed\n', path);
    lab.write('untracked.txt', 'u\n', path);
    const resolution = await begin();
    const [parked] = resolution.parked;
    expect(lab.git('show', `${parked?.ref}:a.txt`)).toBe('not committed');
    expect(lab.git('show', `${parked?.ref}:untracked.txt`)).toBe('u');
    expect(readFileSync(join(path, 'untracked.txt'), 'utf8')).toBe('u\n');
  });
});

describe('a conflict that cannot be merged by lines', () => {
  it('is described file by file', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab({
      'bild ü.png': '\0one',
      'gone here.txt': 'one\n',
      'gone there.txt': 'one\n',
      'new.txt': '',
      link: 'x',
    });
    const both = (folder: string, who: string) => {
      lab.write('bild ü.png', `\0${who}`, folder);
      rmSync(join(folder, 'link'));
      symlinkSync(`to ${who}`, join(folder, 'link'));
    };
    both(path, 'work');
    lab.write('gone here.txt', 'work\n', path);
    rmSync(join(path, 'gone there.txt'));
    const tip = lab.commit(path, '日本 added.txt', 'work\n');
    both(lab.root, 'main');
    rmSync(join(lab.root, 'gone here.txt'));
    lab.write('gone there.txt', 'main\n', lab.root);
    lab.commit(lab.root, '日本 added.txt', 'main\n');
    const resolution = await begin();
    expect(resolution.commit).toBe(tip);
    expect(resolution.files).toEqual([
      {
        path: 'bild ü.png',
        kind: 'binary',
        words: 'changed on both sides, and cannot be merged by lines; the workspace has the version of main',
      },
      {
        path: 'gone here.txt',
        kind: 'deleted-by-ours',
        words: 'deleted on main, changed by this commit; the workspace has the version of this commit',
      },
      {
        path: 'gone there.txt',
        kind: 'deleted-by-theirs',
        words: 'changed on main, deleted by this commit; the workspace has the version of main',
      },
      expect.objectContaining({ path: 'link', kind: 'binary' }),
      { path: '日本 added.txt', kind: 'text', words: 'changed on both sides; markers show where' },
    ]);
    expect(readFileSync(join(path, 'bild ü.png'), 'utf8')).toBe('\0main');
    expect(readFileSync(join(path, 'gone here.txt'), 'utf8')).toBe('work\n');
    expect(readFileSync(join(path, 'gone there.txt'), 'utf8')).toBe('main\n');
    expect(await proceed(resolution)).toMatchObject({ kind: 'unsolved', files: ['日本 added.txt'] });
    rmSync(join(path, 'gone there.txt'));
    lab.write('日本 added.txt', 'both\n', path);
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('ls-tree', '--name-only', '-z', branch).split('\0')).toEqual([
      'a.txt',
      'bild ü.png',
      'gone here.txt',
      'link',
      'new.txt',
      '日本 added.txt',
      '',
    ]);
  });

  it('is described as moved if both sides renamed a file differently', async () => {
    const { lab, path, begin, proceed } = await conflictLab({ 'old.txt': 'some\nlines\nthat\nstay\n' });
    lab.gitAt(path, 'mv', 'old.txt', 'work.txt');
    lab.commit(path, 'x.txt', 'x\n');
    lab.git('mv', 'old.txt', 'main.txt');
    lab.commit(lab.root, 'y.txt', 'y\n');
    const resolution = await begin();
    expect(resolution.files.map(({ path: name, kind }) => [name, kind])).toEqual([
      ['main.txt', 'moved'],
      ['old.txt', 'moved'],
      ['work.txt', 'moved'],
    ]);
    rmSync(join(path, 'main.txt'));
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.gitAt(path, 'ls-files')).toBe('a.txt\nwork.txt\nx.txt\ny.txt');
  });
});

describe('a resolution', () => {
  it('is refused while a conflicted file has markers', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab({ 'markers.md': 'x\n', 'b.txt': 'b\n' });
    const about = 'x\n<<<<<<< HEAD\none\n=======\nother\n>>>>>>> branch\n';
    lab.write('markers.md', about, path);
    lab.write('b.txt', 'work\n', path);
    lab.commit(path, 'a.txt', 'work\r\n');
    lab.write('markers.md', 'y\n', lab.root);
    lab.write('b.txt', 'main\n', lab.root);
    lab.commit(lab.root, 'a.txt', 'main\r\n');
    const resolution = await begin();
    const before = lab.gitAt(path, 'status', '--porcelain');
    expect(await proceed(resolution)).toEqual({
      kind: 'unsolved',
      files: ['a.txt', 'b.txt', 'markers.md'],
      why: 'conflict markers are left in a.txt, b.txt, markers.md',
    });
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe(before);
    // Fewer than three kinds of markers are ordinary text, and a file about markers may have its own.
    lab.write('a.txt', '<<<<<<< left\n>>>>>>> right\n', path);
    lab.write('b.txt', 'Heading\n=======\n <<<<<<< x\n>>>>>>> y\n', path);
    lab.write('markers.md', about, path);
    lab.write('elsewhere.txt', about, path);
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('show', `${branch}:markers.md`)).toBe(about.trimEnd());
  });

  it('is taken from the files of the workspace, committed or not', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.commit(path, 'a.txt', 'first try\n');
    lab.commit(path, 'a.txt', 'both\n');
    lab.write('c.txt', 'c\n', path);
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe('Write b.txt\nWrite a.txt');
    expect(lab.git('show', '--format=', '--name-only', `${branch}~1`)).toBe('a.txt\nc.txt');
  });

  it('drops a commit that became empty, and parks the old tip', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    const main = lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'main\n', path);
    const ref = expect.stringMatching(/^refs\/reprise\/parked\//);
    expect(await proceed(resolution)).toEqual({
      kind: 'resolved',
      branch,
      commit: main,
      dropped: ['Write a.txt'],
      parked: [{ ref, commit: tip, commits: 1 }],
    });
    expect(lab.git('for-each-ref', '--format=%(objectname)', 'refs/reprise/parked')).toBe(tip);
    expect(lab.git('rev-parse', branch)).toBe(main);
  });

  it('may be made by rebasing, merging or moving the branch', async () => {
    for (const how of ['rebase', 'merge', 'move']) {
      const { lab, path, begin, proceed, branch, state } = await conflictLab();
      lab.commit(path, 'a.txt', 'work\n');
      const tip = lab.commit(path, 'b.txt', 'b\n');
      lab.commit(lab.root, 'a.txt', 'main\n');
      const resolution = await begin();
      if (how === 'move') lab.gitAt(path, 'checkout', '--quiet', '-B', branch);
      else {
        lab.gitAt(path, 'checkout', '--quiet', '--force', branch);
        expect(() => lab.gitAt(path, how, 'main')).toThrow();
      }
      lab.write('a.txt', 'both\n', path);
      lab.gitAt(path, 'add', '--all');
      const next =
        how === 'rebase' ? ['-c', 'core.editor=true', 'rebase', '--continue'] : ['commit', '-m', 'Solve'];
      lab.gitAt(path, ...next);
      const resolved = await proceed(resolution);
      expect(resolved).toMatchObject({ kind: 'resolved', dropped: [], parked: [{ commit: tip }] });
      expect(state()[0]).toBe(`refs/heads/${branch}`);
      expect(state()[2]).toBe('');
      expect(lab.git('diff', '--name-status', 'main', branch)).toBe('M\ta.txt\nA\tb.txt');
      expect(lab.git('merge-base', 'main', branch)).toBe(lab.git('rev-parse', 'main'));
    }
  });

  it('is taken from an unfinished rebase, which is then quit', async () => {
    const { lab, path, begin, proceed, branch, state } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.gitAt(path, 'checkout', '--quiet', '--force', branch);
    expect(() => lab.gitAt(path, 'rebase', 'main')).toThrow();
    lab.write('a.txt', 'both\n', path);
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.gitAt(path, 'status')).not.toContain('rebase');
    expect(state()[2]).toBe('');
    expect(lab.git('diff', '--name-status', 'main', branch)).toBe('M\ta.txt\nA\tb.txt');
  });

  it('is refused if HEAD does not contain the target, so that it never reverts the target', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.write('other.txt', 'of main\n', lab.root);
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.gitAt(path, 'checkout', '--quiet', '--force', branch);
    expect(await proceed(resolution)).toEqual({
      kind: 'unsolved',
      files: ['a.txt'],
      why: expect.stringContaining('HEAD no longer contains the commits of main'),
    });
    expect(lab.git('rev-parse', branch)).toBe(tip);
  });

  it('does not move a branch that was moved, deleted or checked out elsewhere meanwhile', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    const other = lab.git('commit-tree', '-p', tip, '-m', 'Other', `${tip}^{tree}`);
    lab.git('update-ref', `refs/heads/${branch}`, other);
    expect(await proceed(resolution)).toMatchObject({
      kind: 'refused',
      why: `${branch} was moved to ${other.slice(0, 10)} while its conflicts were being resolved`,
    });
    expect(lab.git('rev-parse', branch)).toBe(other);
    lab.git('update-ref', '-d', `refs/heads/${branch}`);
    expect(await proceed(resolution)).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('deleted'),
    });
    lab.git('update-ref', `refs/heads/${branch}`, tip);
    lab.git('worktree', 'add', '--quiet', lab.workspace('curious'), branch);
    const refused = await proceed(resolution);
    expect(refused).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('checked out elsewhere'),
    });
    const kept = /git log '(\S+)'$/.exec('hint' in refused ? refused.hint : '')?.[1] ?? '';
    expect(lab.git('show', `${kept}:a.txt`)).toBe('both');
    lab.git('worktree', 'remove', lab.workspace('curious'));
    expect(await proceed(resolution)).toMatchObject({ kind: 'resolved' });
  });

  it('is refused if the workspace contains another repository', async () => {
    const { lab, path, begin, proceed } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    lab.gitAt(path, 'init', '--quiet', 'inner');
    lab.write('inner/x.txt', 'x\n', path);
    await expect(proceed(resolution)).rejects.toThrow('there is another repository');
  });
});

describe('aborting a resolution', () => {
  it('resets the workspace to its branch, and parks the changes', async () => {
    const { lab, path, begin, abort, branch, state } = await conflictLab();
    writeFileSync(join(lab.root, '.git/info/exclude'), '.env\n');
    lab.write('.env', 'x\n', path);
    lab.commit(path, 'b.txt', 'b\n');
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'half solved\n', path);
    lab.write('new.txt', 'new\n', path);
    const { parked } = await abort(resolution);
    expect(state()).toEqual([`refs/heads/${branch}`, tip, '']);
    expect(lab.git('show', `${parked[0]?.ref}:a.txt`)).toBe('half solved');
    expect(lab.git('show', `${parked[0]?.ref}:new.txt`)).toBe('new');
    expect(existsSync(join(path, 'new.txt'))).toBe(false);
    expect(existsSync(join(path, '.env'))).toBe(true);
    expect(await abort(resolution)).toEqual({ parked: [] });
  });

  it('resets a branch that the agent moved, but not one that another process moved', async () => {
    const { lab, path, begin, abort, branch, state } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.gitAt(path, 'checkout', '--quiet', '-B', branch);
    const own = lab.commit(path, 'a.txt', 'own way\n');
    expect((await abort(resolution)).parked.map(each => each.commit)).toEqual([own]);
    expect(state()).toEqual([`refs/heads/${branch}`, tip, '']);
    await begin();
    const other = lab.git('commit-tree', '-p', tip, '-m', 'Other', `${tip}^{tree}`);
    lab.git('update-ref', `refs/heads/${branch}`, other);
    await abort(resolution);
    expect(state()).toEqual([`refs/heads/${branch}`, other, '']);
  });
});

describe('a call that is repeated because its result was lost', () => {
  const throughJson = (resolution: Resolution): Resolution => JSON.parse(JSON.stringify(resolution));

  it('returns the result of the first call', async () => {
    const { lab, path, begin, proceed, branch } = await conflictLab({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
    lab.commit(path, 'a.txt', 'work a\n');
    lab.commit(path, 'b.txt', 'work b\n');
    lab.commit(lab.root, 'a.txt', 'main a\n');
    lab.commit(lab.root, 'b.txt', 'main b\n');
    const first = await begin();
    lab.write('a.txt', 'both a\n', path);
    expect(await begin()).toEqual(first);
    expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('both a\n');
    const second = await proceed(throughJson(first));
    expect(await proceed(first)).toEqual(second);
    if (second.kind !== 'conflict') throw new Error(second.kind);
    lab.write('b.txt', 'both b\n', path);
    const resolved = await proceed(second.resolution);
    expect(resolved).toMatchObject({ kind: 'resolved' });
    lab.write('later.txt', 'later\n', path);
    expect(await proceed(throughJson(second.resolution))).toEqual(resolved);
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe('Write b.txt\nWrite a.txt');
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('?? later.txt');
  });

  it.each(['HEAD', 'index', 'files', 'mark'])('repeats a layout interrupted before %s', async lost => {
    const { lab, path, gitDir, begin, proceed, branch } = await conflictLab({
      'a.txt': 'a\n',
      'b.txt': 'b\n',
    });
    lab.commit(path, 'a.txt', 'work a\n');
    lab.commit(path, 'b.txt', 'work b\n');
    lab.commit(lab.root, 'a.txt', 'main a\n');
    lab.commit(lab.root, 'b.txt', 'main b\n');
    const first = await begin();
    lab.write('a.txt', 'both a\n', path);
    const before = {
      head: lab.gitAt(path, 'rev-parse', 'HEAD'),
      index: readFileSync(join(gitDir, 'index')),
    };
    const second = await proceed(first);
    if (second.kind !== 'conflict') throw new Error(second.kind);
    // The state that a crash during the layout leaves behind.
    const mark = join(gitDir, 'reprise-resolution.json');
    const { after } = JSON.parse(readFileSync(mark, 'utf8'));
    const { at, commit, tree, rest, isWhole, subject, labels, files, ...begun } = second.resolution;
    const conflict = {
      kind: 'conflict',
      ...{ at, commit, tree, rest, isWhole, subject },
      files: ['b.txt'],
      stages: [2, 3].map(stage => ({ path: 'b.txt', stage, mode: '100644', id: 'x' })),
      sides: { ours: 'x', theirs: commit },
    };
    const draft = { ...begun, ontoName: labels.ours, conflict };
    writeFileSync(mark, JSON.stringify({ after, value: { kind: 'laying-out', draft } }));
    if (lost !== 'mark') {
      lab.write('b.txt', 'main b\n', path);
      if (lost !== 'files') writeFileSync(join(gitDir, 'index'), before.index);
      if (lost === 'HEAD') lab.gitAt(path, 'update-ref', '--no-deref', 'HEAD', before.head);
    }
    const again = await proceed(first);
    expect(again).toMatchObject({ kind: 'conflict', resolution: { at, commit, files } });
    expect(lab.gitAt(path, 'rev-parse', 'HEAD')).toBe(at);
    expect(readFileSync(join(path, 'b.txt'), 'utf8')).toContain('=======');
    lab.write('b.txt', 'both b\n', path);
    if (again.kind !== 'conflict') return;
    expect(await proceed(again.resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('show', `${branch}:b.txt`)).toBe('both b');
    expect(lab.git('show', `${branch}~1:a.txt`)).toBe('both a');
  });

  it('completes an interrupted move of the branch', async () => {
    const { lab, path, begin, proceed, branch, state } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(path, 'b.txt', 'b\n');
    const old = lab.git('rev-parse', branch);
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    const resolved = await proceed(resolution);
    const commit = 'commit' in resolved ? resolved.commit : '';
    // First as if the branch had not moved yet, then as if HEAD was not attached to it yet.
    lab.gitAt(path, 'checkout', '--quiet', '--detach', resolution.at);
    lab.git('update-ref', `refs/heads/${branch}`, old);
    expect(await proceed(resolution)).toEqual(resolved);
    expect(state()).toEqual([`refs/heads/${branch}`, commit, '']);
    lab.gitAt(path, 'checkout', '--quiet', '--detach', tip);
    expect(await proceed(resolution)).toEqual(resolved);
    expect(state()).toEqual([`refs/heads/${branch}`, commit, '']);
  });

  it('requires the workspace of the branch', async () => {
    const { lab, repository, path, branch } = await conflictLab();
    const request = { repository, owner: lab.owner, path, branch: 'reprise/other', onto: 'main' };
    await expect(beginResolution(request)).rejects.toThrow(`is the workspace of ${branch}`);
    await expect(beginResolution({ ...request, path: lab.root })).rejects.toThrow(
      'not a workspace that Reprise made',
    );
    await expect(beginResolution({ ...request, branch, onto: 'no/such' })).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: 'there is no no/such',
    });
  });
});
