import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { worktreeState } from '../delta/capture.ts';
import { land } from '../landing/land-now.ts';
import { conflictLab } from '../test-support.ts';
import type { Resolution } from './progress.ts';
import { beginResolution } from './resolve.ts';

describe('a conflict', () => {
  it('is laid out with words behind its markers, on no branch, which stays where it was', async () => {
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

  it('can be recorded as what a session begins with', async () => {
    const { lab, repository, path, begin } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const { at } = await begin();
    const state = await worktreeState({ repository, folder: path, objectsDir: join(lab.folder, 'objects') });
    expect(state.head).toEqual({ commit: at, branch: null });
    expect(state.index.tree).toBe(lab.git('rev-parse', `${at}^{tree}`));
    expect(state.tree).not.toBe(state.index.tree);
  });

  it('becomes the commit that did not fit, by its author, with the rest of the branch on it', async () => {
    const { lab, path, branch, begin, goOn, state } = await conflictLab();
    lab.commit(path, 'before.txt', 'x\n');
    lab.write('a.txt', 'work\n', path);
    const message = 'Ünïcode subject\n\n  indented\n# not a comment\n';
    const author = ['--author=Bób <bob@example.com>', '--date=@1000000000 +0130'];
    lab.gitAt(path, 'commit', '--all', '--quiet', ...author, '--cleanup=verbatim', '-m', message);
    lab.commit(path, 'after.txt', 'y\n');
    const main = lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    const resolved = await goOn(resolution);
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

  it('can be landed once it is solved', async () => {
    const { lab, path, branch, begin, goOn, repository } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const landBranch = () => land({ repository, owner: lab.owner, source: { branch }, onto: 'main' });
    expect(await landBranch()).toMatchObject({ kind: 'conflict' });
    const resolution = await begin();
    expect(await landBranch()).toMatchObject({ kind: 'conflict' });
    lab.write('a.txt', 'both\n', path);
    await goOn(resolution);
    expect(await landBranch()).toMatchObject({ kind: 'landed', subjects: ['Write a.txt'] });
  });

  it('is followed by the next one', async () => {
    const { lab, path, branch, begin, goOn, state } = await conflictLab({ 'a.txt': 'a\n', 'b c.txt': 'b\n' });
    lab.commit(path, 'a.txt', 'work a\n');
    lab.commit(path, 'b c.txt', 'work b\n');
    lab.commit(path, 'd.txt', 'd\n');
    lab.commit(lab.root, 'a.txt', 'main a\n');
    lab.commit(lab.root, 'b c.txt', 'main b\n');
    const first = await begin();
    expect(first.files.map(file => file.path)).toEqual(['a.txt']);
    lab.write('a.txt', 'both a\n', path);
    lab.write('new.txt', 'came with the solution\n', path);
    const second = await goOn(first);
    expect(second).toMatchObject({
      kind: 'conflict',
      resolution: { subject: 'Write b c.txt', files: [{ path: 'b c.txt' }], rest: [{}] },
    });
    if (second.kind !== 'conflict') return;
    lab.write('b c.txt', 'both b\n', path);
    expect(await goOn(second.resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe('Write d.txt\nWrite b c.txt\nWrite a.txt');
    expect(lab.git('show', '--format=', '--name-only', `${branch}~2`)).toBe('a.txt\nnew.txt');
    expect(state()[2]).toBe('');
  });

  it('gives the same commits for the same solution', async () => {
    const commits: unknown[] = [];
    for (let round = 0; round < 2; round++) {
      const { lab, path, begin, goOn } = await conflictLab();
      lab.commit(path, 'a.txt', 'work\n');
      lab.commit(path, 'b.txt', 'b\n');
      lab.commit(lab.root, 'a.txt', 'main\n');
      const resolution = await begin();
      lab.write('a.txt', 'both\n', path);
      commits.push(resolution, await goOn(resolution));
    }
    expect(commits[2]).toEqual(commits[0]);
    expect(commits[3]).toEqual(commits[1]);
  });

  it('that is gone by now is none', async () => {
    const { lab, path, tryToBegin } = await conflictLab();
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    expect(await tryToBegin()).toEqual({ kind: 'fits' });
    expect(lab.gitAt(path, 'status', '--porcelain', '--branch')).toMatch(/^## reprise\//);
  });

  it('of a branch with merges is solved as one commit', async () => {
    const { lab, path, branch, begin, goOn } = await conflictLab();
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'c.txt', 'c\n');
    lab.gitAt(path, 'merge', '--quiet', '--no-edit', 'main');
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    expect(resolution.isWhole).toBe(true);
    lab.write('a.txt', 'both\n', path);
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('log', '--format=%B', `main..${branch}`).trim()).toBe('Write b.txt\n\n- Write a.txt');
    expect(lab.git('ls-tree', '--name-only', branch)).toBe('a.txt\nb.txt\nc.txt');
  });
});

describe('what is in the way', () => {
  it('stays if git does not track it, unless the commit has it', async () => {
    const { lab, path, begin, goOn, state } = await conflictLab();
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
    // Nothing of the commit is lost if it leaves the index.
    lab.gitAt(path, 'reset', '--quiet');
    lab.write('a.txt', 'both\n', path);
    await goOn(resolution);
    expect(lab.gitAt(path, 'ls-tree', '--name-only', 'HEAD')).toBe('.env\n:forced\na.txt\nmain.txt');
    expect(existsSync(join(path, 'node_modules/x/index.js'))).toBe(true);
    expect(state()[2]).toBe('');
  });

  it('is parked if it was not committed', async () => {
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

describe('what cannot be merged line by line', () => {
  it('is described file by file', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab({
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
        words: 'changed on both sides, and cannot be merged line by line; it is here as main has it',
      },
      {
        path: 'gone here.txt',
        kind: 'deleted-by-ours',
        words: 'deleted on main, changed by this commit; it is here as this commit has it',
      },
      {
        path: 'gone there.txt',
        kind: 'deleted-by-theirs',
        words: 'changed on main, deleted by this commit; it is here as main has it',
      },
      expect.objectContaining({ path: 'link', kind: 'binary' }),
      { path: '日本 added.txt', kind: 'text', words: 'changed on both sides; markers show where' },
    ]);
    expect(readFileSync(join(path, 'bild ü.png'), 'utf8')).toBe('\0main');
    expect(readFileSync(join(path, 'gone here.txt'), 'utf8')).toBe('work\n');
    expect(readFileSync(join(path, 'gone there.txt'), 'utf8')).toBe('main\n');
    expect(await goOn(resolution)).toMatchObject({ kind: 'unsolved', files: ['日本 added.txt'] });
    rmSync(join(path, 'gone there.txt'));
    lab.write('日本 added.txt', 'both\n', path);
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
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

  it('is said of names on which both sides disagree', async () => {
    const { lab, path, begin, goOn } = await conflictLab({ 'old.txt': 'some\nlines\nthat\nstay\n' });
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
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.gitAt(path, 'ls-files')).toBe('a.txt\nwork.txt\nx.txt\ny.txt');
  });
});

describe('a solution', () => {
  it('is none while there are markers in a conflicted file', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab({ 'markers.md': 'x\n', 'b.txt': 'b\n' });
    const about = 'x\n<<<<<<< HEAD\none\n=======\nother\n>>>>>>> branch\n';
    lab.write('markers.md', about, path);
    lab.write('b.txt', 'work\n', path);
    lab.commit(path, 'a.txt', 'work\r\n');
    lab.write('markers.md', 'y\n', lab.root);
    lab.write('b.txt', 'main\n', lab.root);
    lab.commit(lab.root, 'a.txt', 'main\r\n');
    const resolution = await begin();
    const before = lab.gitAt(path, 'status', '--porcelain');
    expect(await goOn(resolution)).toEqual({
      kind: 'unsolved',
      files: ['a.txt', 'b.txt', 'markers.md'],
      why: 'conflict markers are left in a.txt, b.txt, markers.md',
    });
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe(before);
    // Without one of the three they are text like any other; and a file about markers may have its own.
    lab.write('a.txt', '<<<<<<< left\n>>>>>>> right\n', path);
    lab.write('b.txt', 'Heading\n=======\n <<<<<<< x\n>>>>>>> y\n', path);
    lab.write('markers.md', about, path);
    lab.write('elsewhere.txt', about, path);
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('show', `${branch}:markers.md`)).toBe(about.trimEnd());
  });

  it('counts as it lies there, also if it was committed', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.commit(path, 'a.txt', 'first try\n');
    lab.commit(path, 'a.txt', 'both\n');
    lab.write('c.txt', 'c\n', path);
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe('Write b.txt\nWrite a.txt');
    expect(lab.git('show', '--format=', '--name-only', `${branch}~1`)).toBe('a.txt\nc.txt');
  });

  it('of which nothing is left is dropped, and the old branch is parked', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    const main = lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'main\n', path);
    const ref = expect.stringMatching(/^refs\/reprise\/parked\//);
    expect(await goOn(resolution)).toEqual({
      kind: 'resolved',
      branch,
      commit: main,
      dropped: ['Write a.txt'],
      parked: [{ ref, commit: tip, commits: 1 }],
    });
    expect(lab.git('for-each-ref', '--format=%(objectname)', 'refs/reprise/parked')).toBe(tip);
    expect(lab.git('rev-parse', branch)).toBe(main);
  });

  it('may be made by a rebase or a merge of the branch itself', async () => {
    for (const how of ['rebase', 'merge', 'take the branch along']) {
      const { lab, path, begin, goOn, branch, state } = await conflictLab();
      lab.commit(path, 'a.txt', 'work\n');
      const tip = lab.commit(path, 'b.txt', 'b\n');
      lab.commit(lab.root, 'a.txt', 'main\n');
      const resolution = await begin();
      if (how === 'take the branch along') lab.gitAt(path, 'checkout', '--quiet', '-B', branch);
      else {
        lab.gitAt(path, 'checkout', '--quiet', '--force', branch);
        expect(() => lab.gitAt(path, how, 'main')).toThrow();
      }
      lab.write('a.txt', 'both\n', path);
      lab.gitAt(path, 'add', '--all');
      const next =
        how === 'rebase' ? ['-c', 'core.editor=true', 'rebase', '--continue'] : ['commit', '-m', 'Solve'];
      lab.gitAt(path, ...next);
      const resolved = await goOn(resolution);
      expect(resolved).toMatchObject({ kind: 'resolved', dropped: [], parked: [{ commit: tip }] });
      expect(state()[0]).toBe(`refs/heads/${branch}`);
      expect(state()[2]).toBe('');
      expect(lab.git('diff', '--name-status', 'main', branch)).toBe('M\ta.txt\nA\tb.txt');
      expect(lab.git('merge-base', 'main', branch)).toBe(lab.git('rev-parse', 'main'));
    }
  });

  it('in the middle of a rebase that somebody began is taken, and the rebase is over', async () => {
    const { lab, path, begin, goOn, branch, state } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(path, 'b.txt', 'b\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.gitAt(path, 'checkout', '--quiet', '--force', branch);
    expect(() => lab.gitAt(path, 'rebase', 'main')).toThrow();
    lab.write('a.txt', 'both\n', path);
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.gitAt(path, 'status')).not.toContain('rebase');
    expect(state()[2]).toBe('');
    expect(lab.git('diff', '--name-status', 'main', branch)).toBe('M\ta.txt\nA\tb.txt');
  });

  it('never takes back what main has: somebody who left for the old branch has solved nothing', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.write('other.txt', 'of main\n', lab.root);
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.gitAt(path, 'checkout', '--quiet', '--force', branch);
    expect(await goOn(resolution)).toEqual({
      kind: 'unsolved',
      files: ['a.txt'],
      why: expect.stringContaining('does not have the commits of main any more'),
    });
    expect(lab.git('rev-parse', branch)).toBe(tip);
  });

  it('does not move a branch that somebody else has moved, deleted or checked out', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    const other = lab.git('commit-tree', '-p', tip, '-m', 'Other', `${tip}^{tree}`);
    lab.git('update-ref', `refs/heads/${branch}`, other);
    expect(await goOn(resolution)).toMatchObject({
      kind: 'refused',
      why: `${branch} was moved to ${other.slice(0, 10)} by somebody else while its conflicts were solved`,
    });
    expect(lab.git('rev-parse', branch)).toBe(other);
    lab.git('update-ref', '-d', `refs/heads/${branch}`);
    expect(await goOn(resolution)).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('deleted'),
    });
    lab.git('update-ref', `refs/heads/${branch}`, tip);
    lab.git('worktree', 'add', '--quiet', lab.workspace('curious'), branch);
    const refused = await goOn(resolution);
    expect(refused).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('checked out somewhere else'),
    });
    const kept = /git log '(\S+)'$/.exec('hint' in refused ? refused.hint : '')?.[1] ?? '';
    expect(lab.git('show', `${kept}:a.txt`)).toBe('both');
    lab.git('worktree', 'remove', lab.workspace('curious'));
    expect(await goOn(resolution)).toMatchObject({ kind: 'resolved' });
  });

  it('is not made of another repository inside', async () => {
    const { lab, path, begin, goOn } = await conflictLab();
    lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    lab.gitAt(path, 'init', '--quiet', 'inner');
    lab.write('inner/x.txt', 'x\n', path);
    await expect(goOn(resolution)).rejects.toThrow('there is another repository');
  });
});

describe('giving up', () => {
  it('goes back to the branch, and parks what was done', async () => {
    const { lab, path, begin, giveUp, branch, state } = await conflictLab();
    writeFileSync(join(lab.root, '.git/info/exclude'), '.env\n');
    lab.write('.env', 'x\n', path);
    lab.commit(path, 'b.txt', 'b\n');
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'half solved\n', path);
    lab.write('new.txt', 'new\n', path);
    const { parked } = await giveUp(resolution);
    expect(state()).toEqual([`refs/heads/${branch}`, tip, '']);
    expect(lab.git('show', `${parked[0]?.ref}:a.txt`)).toBe('half solved');
    expect(lab.git('show', `${parked[0]?.ref}:new.txt`)).toBe('new');
    expect(existsSync(join(path, 'new.txt'))).toBe(false);
    expect(existsSync(join(path, '.env'))).toBe(true);
    expect(await giveUp(resolution)).toEqual({ parked: [] });
  });

  it('takes the branch back from whoever moved it to solve the conflict, but from nobody else', async () => {
    const { lab, path, begin, giveUp, branch, state } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.gitAt(path, 'checkout', '--quiet', '-B', branch);
    const own = lab.commit(path, 'a.txt', 'own way\n');
    expect((await giveUp(resolution)).parked.map(each => each.commit)).toEqual([own]);
    expect(state()).toEqual([`refs/heads/${branch}`, tip, '']);
    await begin();
    const other = lab.git('commit-tree', '-p', tip, '-m', 'Other', `${tip}^{tree}`);
    lab.git('update-ref', `refs/heads/${branch}`, other);
    await giveUp(resolution);
    expect(state()).toEqual([`refs/heads/${branch}`, other, '']);
  });
});

describe('a call that is repeated because its answer was lost', () => {
  const throughJson = (resolution: Resolution): Resolution => JSON.parse(JSON.stringify(resolution));

  it('finds what the first one did', async () => {
    const { lab, path, begin, goOn, branch } = await conflictLab({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
    lab.commit(path, 'a.txt', 'work a\n');
    lab.commit(path, 'b.txt', 'work b\n');
    lab.commit(lab.root, 'a.txt', 'main a\n');
    lab.commit(lab.root, 'b.txt', 'main b\n');
    const first = await begin();
    lab.write('a.txt', 'both a\n', path);
    expect(await begin()).toEqual(first);
    expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('both a\n');
    const second = await goOn(throughJson(first));
    expect(await goOn(first)).toEqual(second);
    if (second.kind !== 'conflict') throw new Error(second.kind);
    lab.write('b.txt', 'both b\n', path);
    const resolved = await goOn(second.resolution);
    expect(resolved).toMatchObject({ kind: 'resolved' });
    lab.write('later.txt', 'later\n', path);
    expect(await goOn(throughJson(second.resolution))).toEqual(resolved);
    expect(lab.git('log', '--format=%s', `main..${branch}`)).toBe('Write b.txt\nWrite a.txt');
    expect(lab.gitAt(path, 'status', '--porcelain')).toBe('?? later.txt');
  });

  it.each(['HEAD', 'index', 'files', 'mark'])('does it again if %s was not there yet', async lost => {
    const { lab, path, gitDir, begin, goOn, branch } = await conflictLab({ 'a.txt': 'a\n', 'b.txt': 'b\n' });
    lab.commit(path, 'a.txt', 'work a\n');
    lab.commit(path, 'b.txt', 'work b\n');
    lab.commit(lab.root, 'a.txt', 'main a\n');
    lab.commit(lab.root, 'b.txt', 'main b\n');
    const first = await begin();
    lab.write('a.txt', 'both a\n', path);
    const before = { head: lab.gitAt(path, 'rev-parse', 'HEAD'), index: readFileSync(join(gitDir, 'index')) };
    const second = await goOn(first);
    if (second.kind !== 'conflict') throw new Error(second.kind);
    // As a crash in the middle of it would have left it.
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
    const again = await goOn(first);
    expect(again).toMatchObject({ kind: 'conflict', resolution: { at, commit, files } });
    expect(lab.gitAt(path, 'rev-parse', 'HEAD')).toBe(at);
    expect(readFileSync(join(path, 'b.txt'), 'utf8')).toContain('=======');
    lab.write('b.txt', 'both b\n', path);
    if (again.kind !== 'conflict') return;
    expect(await goOn(again.resolution)).toMatchObject({ kind: 'resolved' });
    expect(lab.git('show', `${branch}:b.txt`)).toBe('both b');
    expect(lab.git('show', `${branch}~1:a.txt`)).toBe('both a');
  });

  it('ends what was about to end', async () => {
    const { lab, path, begin, goOn, branch, state } = await conflictLab();
    const tip = lab.commit(path, 'a.txt', 'work\n');
    lab.commit(path, 'b.txt', 'b\n');
    const old = lab.git('rev-parse', branch);
    lab.commit(lab.root, 'a.txt', 'main\n');
    const resolution = await begin();
    lab.write('a.txt', 'both\n', path);
    const resolved = await goOn(resolution);
    const commit = 'commit' in resolved ? resolved.commit : '';
    // The branch had not moved yet; then, HEAD was not on it yet.
    lab.gitAt(path, 'checkout', '--quiet', '--detach', resolution.at);
    lab.git('update-ref', `refs/heads/${branch}`, old);
    expect(await goOn(resolution)).toEqual(resolved);
    expect(state()).toEqual([`refs/heads/${branch}`, commit, '']);
    lab.gitAt(path, 'checkout', '--quiet', '--detach', tip);
    expect(await goOn(resolution)).toEqual(resolved);
    expect(state()).toEqual([`refs/heads/${branch}`, commit, '']);
  });

  it('needs a workspace of that branch', async () => {
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
