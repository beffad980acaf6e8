import { readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkoutOfBranch } from './landing/move-branch.ts';
import { branchTip, headInFiles, looseTip } from './refs.ts';
import { Lab } from './test-support.ts';

const foldersOf = (lab: Lab) => ({ gitDir: join(lab.root, '.git'), commonDir: join(lab.root, '.git') });

describe('the tip of a branch', () => {
  it('is read from its file, or asked of git where it has none', async () => {
    const lab = new Lab();
    const tip = lab.git('rev-parse', 'main');
    const { commonDir } = foldersOf(lab);
    const repository = await lab.open();
    expect([looseTip(commonDir, 'main'), await branchTip(repository, 'main')]).toEqual([tip, tip]);
    lab.git('pack-refs', '--all');
    expect([looseTip(commonDir, 'main'), await branchTip(repository, 'main')]).toEqual([undefined, tip]);
    const next = lab.commit(lab.root, 'b.txt', 'b\n');
    expect(await branchTip(repository, 'main')).toBe(next);
  });

  it('is none for what is no branch, whatever files lie around', async () => {
    const lab = new Lab();
    lab.git('tag', 'v1');
    lab.git('branch', 'below/main');
    const repository = await lab.open();
    for (const name of ['none', 'below', '../tags/v1', 'main/..', ''])
      expect(await branchTip(repository, name)).toBeUndefined();
  });

  it('is found through a ref that names another', async () => {
    const lab = new Lab();
    lab.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/main');
    expect(await branchTip(await lab.open(), 'alias')).toBe(lab.git('rev-parse', 'main'));
  });
});

describe('HEAD', () => {
  it('is read with its branch, or without one', () => {
    const lab = new Lab();
    const commit = lab.git('rev-parse', 'HEAD');
    expect(headInFiles(foldersOf(lab))).toEqual({ commit, branch: 'main' });
    lab.git('switch', '--quiet', '--detach');
    expect(headInFiles(foldersOf(lab))).toEqual({ commit, branch: undefined });
  });

  it('is left to git before the first commit, with packed refs, and as a link', async () => {
    const lab = new Lab();
    lab.git('pack-refs', '--all');
    expect(headInFiles(foldersOf(lab))).toBeUndefined();
    lab.commit(lab.root, 'b.txt', 'b\n');
    rmSync(join(lab.root, '.git/HEAD'));
    symlinkSync('refs/heads/main', join(lab.root, '.git/HEAD'));
    expect(readFileSync(join(lab.root, '.git/HEAD'), 'utf8').trim()).toBe(lab.git('rev-parse', 'main'));
    expect(headInFiles(foldersOf(lab))).toBeUndefined();
    const { owner } = lab;
    expect(await checkoutOfBranch({ repository: await lab.open(), owner, branch: 'main' })).toEqual({
      kind: 'at',
      path: lab.root,
    });
    lab.git('switch', '--quiet', '--orphan', 'fresh');
    expect(headInFiles(foldersOf(lab))).toBeUndefined();
  });
});
