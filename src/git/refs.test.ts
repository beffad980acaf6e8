import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { branchesOf, branchTip, readHead } from './refs.ts';
import { Lab, plainEnvironment } from './test-support.ts';
import { checkoutOfBranch } from './workspace/worktree.ts';

describe('the tip of a branch', () => {
  it('is found in packed refs, and in the ref that replaces them', async () => {
    const lab = new Lab();
    const repository = await lab.open();
    const tip = lab.git('rev-parse', 'main');
    expect(await branchTip(repository, 'main')).toBe(tip);
    lab.git('pack-refs', '--all');
    expect(await branchTip(repository, 'main')).toBe(tip);
    const next = lab.commit(lab.root, 'b.txt', 'b\n');
    expect(await branchTip(repository, 'main')).toBe(next);
  });

  it('is undefined for a name that is not a branch', async () => {
    const lab = new Lab();
    lab.git('tag', 'v1');
    lab.git('branch', 'below/main');
    const repository = await lab.open();
    for (const name of ['none', 'below', '../tags/v1', 'main/..', ''])
      expect(await branchTip(repository, name)).toBeUndefined();
  });

  it('is found through a symbolic ref', async () => {
    const lab = new Lab();
    lab.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/main');
    expect(await branchTip(await lab.open(), 'alias')).toBe(lab.git('rev-parse', 'main'));
  });

  it('is found synchronously', async () => {
    const lab = new Lab();
    lab.git('pack-refs', '--all');
    const { tipNow } = branchesOf(() => lab.open(), { cwd: lab.root, env: plainEnvironment });
    expect([tipNow('main'), tipNow('none')]).toEqual([lab.git('rev-parse', 'main'), null]);
    expect(branchesOf(() => lab.open()).tipNow('main')).toBeUndefined();
  });
});

describe('HEAD', () => {
  it('has a commit, and a branch unless it is detached', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    const commit = lab.git('rev-parse', 'HEAD');
    expect(await readHead(git)).toEqual({ commit, branch: 'main' });
    lab.git('switch', '--quiet', '--detach');
    expect(await readHead(git)).toEqual({ commit, branch: undefined });
  });

  it('is found in packed refs and as a symbolic link, and is undefined before the first commit', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    lab.git('pack-refs', '--all');
    const head = { commit: lab.git('rev-parse', 'main'), branch: 'main' };
    expect(await readHead(git)).toEqual(head);
    lab.git('branch', '--force', 'loose', 'main');
    rmSync(join(lab.root, '.git/HEAD'));
    symlinkSync('refs/heads/loose', join(lab.root, '.git/HEAD'));
    expect(await readHead(git)).toEqual({ ...head, branch: 'loose' });
    const { owner } = lab;
    expect(await checkoutOfBranch({ repository: await lab.open(), owner, branch: 'loose' })).toEqual({
      kind: 'at',
      path: lab.root,
      tip: head.commit,
    });
    lab.git('switch', '--quiet', '--orphan', 'fresh');
    expect(await readHead(git)).toBeUndefined();
  });
});
