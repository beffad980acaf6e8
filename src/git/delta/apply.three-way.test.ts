import { expect, test } from 'vitest';
import { apply, type Checkout, furnished, lines, noticeable, record } from './test-support.ts';

/** Clone with one more commit, which adds a file and changes a line in a file that sessions change too. */
function otherBase(checkout: Checkout): Checkout {
  const other = checkout.clone('the second');
  other.write('landed meanwhile.txt', 'by another run\n');
  other.write('src/a.txt', lines('a', 40).replace('a 35\n', 'a changed meanwhile\n'));
  other.commit('Landed meanwhile');
  return other;
}

test('a session with commits and staged and unstaged changes is merged into another base', async () => {
  const { checkout } = furnished();
  const other = otherBase(checkout);
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'a three\n'));
    checkout.git('commit', '--quiet', '--all', '--author=Bob <bob@example.com>', '--message=Change a line');
    checkout.write('second.txt', 'second\n');
    checkout.commit('Add a file');
    checkout.write('src/b.txt', 'staged\n');
    checkout.git('add', 'src/b.txt');
    checkout.write('src/b.txt', 'not staged\n');
    checkout.write('untracked.txt', 'untracked\n');
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'counterfactual' });
  expect(other.git('log', '--format=%an %cn %s')).toBe(
    [
      'Ann Ann Add a file',
      'Bob Ann Change a line',
      'Ann Ann Landed meanwhile',
      'Ann Ann Furnish',
      'Ann Ann Begin',
      '',
    ].join('\n'),
  );
  expect(other.git('show', 'HEAD:src/a.txt')).toBe(
    lines('a', 40).replace('a 3\n', 'a three\n').replace('a 35\n', 'a changed meanwhile\n'),
  );
  expect(other.git('status', '--porcelain')).toBe('MM src/b.txt\n?? untracked.txt\n');
  expect(other.git('show', ':src/b.txt')).toBe('staged\n');
});

test('merges and stashes are carried over', async () => {
  const { checkout } = furnished();
  const other = otherBase(checkout);
  const recorded = await record(checkout, () => {
    checkout.git('checkout', '--quiet', '-b', 'side');
    checkout.write('side.txt', 'side\n');
    checkout.commit('On the side');
    checkout.git('checkout', '--quiet', 'main');
    checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'a three\n'));
    checkout.commit('On main');
    checkout.git('merge', '--quiet', '--no-ff', '--message=Both', 'side');
    checkout.git('branch', '--quiet', '--delete', 'side');
    checkout.write('src/b.txt', 'stashed\n');
    checkout.git('stash', 'push', '--quiet', '--message=for later');
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'counterfactual' });
  expect(other.line('log', '--format=%s', '--first-parent').split('\n').slice(0, 3)).toEqual([
    'Both',
    'On main',
    'Landed meanwhile',
  ]);
  expect(other.line('show', '--no-patch', '--format=%s', 'HEAD^2')).toBe('On the side');
  expect(other.line('rev-parse', 'HEAD^2^')).toBe(other.line('rev-parse', 'HEAD~2'));
  expect(other.git('status', '--porcelain')).toBe('');
  expect(other.line('stash', 'list')).toBe('stash@{0}: On main: for later');
  other.git('stash', 'pop', '--quiet');
  expect(other.git('status', '--porcelain')).toBe(' M src/b.txt\n');
});

test('a commit that conflicts is named, and the worktree stays unchanged', async () => {
  const { checkout } = furnished();
  const other = otherBase(checkout);
  other.write('notes.txt', 'left here\n');
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', lines('a', 40).replace('a 35\n', 'a of the session\n'));
    checkout.commit('Change the same line');
    checkout.write('src/b.txt', 'and more\n');
  });
  const untouched = noticeable(other);
  expect(await apply(other, recorded)).toEqual({
    kind: 'inconclusive',
    why: 'cannot merge commit "Change the same line" into the other base: conflicts in src/a.txt',
  });
  expect(noticeable(other)).toEqual(untouched);
});

test('files that conflict are named, and the worktree stays unchanged', async () => {
  const { checkout } = furnished();
  const other = otherBase(checkout);
  const recorded = await record(checkout, () =>
    checkout.write('src/a.txt', lines('a', 40).replace('a 35\n', 'a of the session\n')),
  );
  const untouched = noticeable(other);
  expect(await apply(other, recorded)).toEqual({
    kind: 'inconclusive',
    why: 'cannot merge the uncommitted changes of the session into the other base: conflicts in src/a.txt',
  });
  expect(noticeable(other)).toEqual(untouched);
});

test('uncommitted changes of the other worktree are kept', async () => {
  const { checkout, base } = furnished();
  const other = checkout.clone('the second');
  other.write('notes.txt', 'left here\n');
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', 'a\n');
    checkout.commit('Shorten');
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'counterfactual' });
  expect(other.git('status', '--porcelain')).toBe('?? notes.txt\n');
  // The commits are the same, because they are based on the same commit.
  expect(other.line('rev-parse', 'HEAD')).toBe(checkout.line('rev-parse', 'HEAD'));
  expect(other.line('rev-parse', 'HEAD^')).toBe(base);
});

test('a session that amended its base cannot be merged into another base', async () => {
  const { checkout } = furnished();
  const other = otherBase(checkout);
  const recorded = await record(checkout, () => {
    checkout.git('commit', '--quiet', '--amend', '--message=Furnish in another way');
  });
  const untouched = noticeable(other);
  expect(await apply(other, recorded)).toMatchObject({
    kind: 'inconclusive',
    why: expect.stringContaining('the session rewrote its first commit'),
  });
  expect(noticeable(other)).toEqual(untouched);
});

test('an ignored file at the path of a committed file is overwritten, as git does', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  other.write('build/out.txt', 'built here\n');
  const recorded = await record(checkout, () => {
    checkout.write('build/out.txt', 'built there\n');
    checkout.git('add', '--force', 'build/out.txt');
    checkout.git('commit', '--quiet', '--message=Keep what was built');
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
});
