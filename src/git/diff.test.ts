import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diffOf } from './diff.ts';
import { Lab } from './test-support.ts';

describe('a diff', () => {
  it('of two commits matches the output of git, for all or for some paths', async () => {
    const lab = new Lab();
    const base = lab.git('rev-parse', 'HEAD');
    lab.write('sub/b.txt', 'b\n');
    const head = lab.commit(lab.root, 'a.txt', 'two\n');
    const repository = await lab.open();
    const all = await diffOf({ repository, base, head });
    expect(all).toBe(`${lab.git('diff', base, head)}\n`);
    expect(all).toContain('+++ b/sub/b.txt');
    expect(await diffOf({ repository, base, head, paths: ['sub'] })).not.toContain('a.txt');
    expect(await diffOf({ repository, base, head, paths: ['*.txt'] })).toBe('');
    expect(await diffOf({ repository, base, head, stat: true })).toMatch(/2 files changed, 2 insertions/);
    expect(await diffOf({ repository, base, head, color: true })).toContain('\x1b[');
  });

  it('of a workspace covers committed, staged, changed, deleted and new files, and leaves its index alone', async () => {
    const lab = new Lab();
    lab.write('.gitignore', '*.log\n');
    lab.write('gone.txt', 'gone\n');
    const base = lab.commit(lab.root, 'c.txt', 'c\n');
    const repository = await lab.open();
    const head = { workspace: lab.root };
    expect(await diffOf({ repository, base, head })).toBe('');
    lab.commit(lab.root, 'committed.txt', 'x\n');
    lab.write('staged.txt', 'x\n');
    lab.git('add', 'staged.txt');
    lab.write('a.txt', 'changed\n');
    rmSync(join(lab.root, 'gone.txt'));
    lab.write('new.txt', 'x\n');
    lab.write('ignored.log', 'x\n');
    mkdirSync(join(lab.root, 'inner'));
    lab.gitAt(join(lab.root, 'inner'), 'init', '--quiet');
    const before = lab.fingerprint();
    const names = (await diffOf({ repository, base, head }))
      .split('\n')
      .filter(line => line.startsWith('diff --git'))
      .map(line => line.replace(/.* b\//, ''));
    expect(names).toEqual(['a.txt', 'committed.txt', 'gone.txt', 'new.txt', 'staged.txt']);
    expect(lab.fingerprint()).toEqual(before);
  });

  it('does not depend on settings, and runs no program from the repository', async () => {
    const lab = new Lab();
    const base = lab.git('rev-parse', 'HEAD');
    writeFileSync(join(lab.root, '.git/info/attributes'), '*.txt diff=loud\n');
    const loud = `touch '${lab.folder}/ran'; cat`;
    for (const [key, value] of [
      ['diff.external', loud],
      ['diff.loud.command', loud],
      ['diff.loud.textconv', loud],
      ['color.ui', 'always'],
      ['diff.noprefix', 'true'],
      ['diff.mnemonicPrefix', 'true'],
    ] as const) {
      lab.git('config', key, value);
    }
    lab.write('a.txt', 'two\n');
    const text = await diffOf({ repository: await lab.open(), base, head: { workspace: lab.root } });
    expect(text).toMatch(
      /^diff --git a\/a\.txt b\/a\.txt\n\P{Cc}+\n--- a\/a\.txt\n\+\+\+ b\/a\.txt\n\P{Cc}+\n-one\n\+two\n$/u,
    );
    expect(() => readFileSync(join(lab.folder, 'ran'))).toThrow();
  });

  it.each(['--output=broken', 'no-such', ''])('requires a commit as its base, not %j', async base => {
    const lab = new Lab();
    const repository = await lab.open();
    await expect(diffOf({ repository, base, head: 'main' })).rejects.toMatchObject({ code: 'GIT_FAILED' });
  });
});
