import { join } from 'node:path';
import { expect, test } from 'vitest';
import { changedRefs, sharedState } from './shared-state.ts';
import { furnished } from './test-support.ts';

test('changes outside of the worktree of a session are listed, without the values of settings', async () => {
  const { checkout, base } = furnished();
  checkout.git('tag', 'old');
  const { git } = await checkout.open();
  const before = await sharedState(git);
  checkout.git('tag', '--delete', 'old');
  checkout.git('branch', 'new');
  checkout.git('config', 'remote.origin.url', 'https://user:password@example.com/x.git');
  const folder = join(checkout.root, '..', 'workspace');
  checkout.git('worktree', 'add', '--quiet', '--detach', folder);
  checkout.write('more.txt', 'more\n');
  checkout.commit('More');
  expect(changedRefs(before, await sharedState(git), ref => ref === 'refs/heads/main')).toEqual({
    refs: [
      { name: 'refs/heads/new', before: null, after: base },
      { name: 'refs/tags/old', before: base, after: null },
    ],
    worktreesAdded: [join(checkout.root, '..', 'workspace')],
    worktreesRemoved: [],
    settings: ['remote.origin.url'],
  });
});

test('nothing is listed if a session changed nothing outside of its worktree', async () => {
  const { checkout } = furnished();
  const { git } = await checkout.open();
  expect(changedRefs(await sharedState(git), await sharedState(git))).toEqual({
    refs: [],
    worktreesAdded: [],
    worktreesRemoved: [],
    settings: [],
  });
});
