import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { applyDelta } from './apply.ts';
import { worktreeState } from './capture.ts';
import { packDelta } from './pack.ts';
import { changedRefs, sharedState, withRefs } from './shared-state.ts';
import { apply, Checkout, furnished, lines, nastySession, noticeable, record } from './test-support.ts';

test('a session with every feature of git is reproduced exactly in another clone', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const recorded = await record(checkout, nastySession);
  const applied = await apply(other, recorded);
  expect(applied).toEqual({ kind: 'exact', state: recorded.after });
  expect(noticeable(other)).toEqual(noticeable(checkout));
  expect(other.git('fsck', '--strict', '--no-dangling')).toBe('');
});

test('a state survives a round trip through JSON', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const { before, after, pack } = await record(checkout, nastySession);
  const copy = JSON.parse(JSON.stringify({ before, after }));
  expect(await apply(other, { ...copy, pack })).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
});

test('a session that only edits files changes neither HEAD nor the index', async () => {
  const { checkout, base } = furnished();
  const other = checkout.clone('the second');
  const index = readFileSync(join(other.root, '.git/index'));
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', 'edited\n');
    checkout.write('new.txt', 'new\n');
  });
  expect(recorded.after.head.commit).toBe(base);
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(readFileSync(join(other.root, '.git/index'))).toEqual(index);
  expect(other.git('status', '--porcelain')).toBe(' M src/a.txt\n?? new.txt\n');
});

test('a session without changes leaves the worktree unchanged', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const untouched = noticeable(other);
  const recorded = await record(checkout, () => {});
  expect(recorded.after).toEqual(recorded.before);
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(untouched);
});

test('a session may turn files into folders and folders into files', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const recorded = await record(checkout, () => {
    rmSync(join(checkout.root, 'run.sh'));
    checkout.write('run.sh/inside.txt', 'a folder now\n');
    rmSync(join(checkout.root, 'src'), { recursive: true });
    checkout.write('src', 'a file now\n');
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
});

test('a session may continue where another one stopped', async () => {
  const { checkout, base } = furnished();
  const other = checkout.clone('the second');
  const first = await record(checkout, nastySession);
  checkout.git('stash', 'drop', '--quiet', 'stash@{1}');
  checkout.git('checkout', '--quiet', '--detach');
  checkout.git('add', '--all');
  checkout.git('commit', '--quiet', '--message=All of it');
  checkout.write('late.txt', 'late\n');
  rmSync(join(checkout.root, 'hollow'), { recursive: true });
  const { repository, objectsDir } = first;
  const after = await worktreeState({ repository, folder: checkout.root, objectsDir });
  const pack = await packDelta({ repository, objectsDir, base, before: first.after, after });
  expect(await apply(other, first)).toMatchObject({ kind: 'exact' });
  expect(await apply(other, { before: first.after, after, pack })).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
  expect(existsSync(join(other.root, 'hollow'))).toBe(false);
});

test('a session may amend the commit that it started from', async () => {
  const { checkout, base } = furnished();
  const other = checkout.clone('the second');
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', 'amended\n');
    checkout.git('commit', '--quiet', '--all', '--amend', '--message=Furnish better');
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
  expect(other.line('rev-parse', 'HEAD')).not.toBe(base);
});

test('a session moves the branch of the workspace that it is applied to', async () => {
  const { checkout } = furnished();
  const { root } = checkout.clone('the second');
  const clone = new Checkout(root);
  const folder = join(root, '..', 'workspace');
  clone.git('worktree', 'add', '--quiet', '-b', 'reprise/worker_1', folder);
  const recorded = await record(checkout, nastySession);
  const untouched = noticeable(clone);
  const repository = await clone.open();
  const applied = await applyDelta({ ...recorded, repository, folder });
  expect(applied).toMatchObject({ kind: 'exact', state: { head: { branch: 'reprise/worker_1' } } });
  const { branch: _, ...rest } = noticeable(checkout);
  expect(noticeable(new Checkout(folder))).toMatchObject(rest);
  // All worktrees share the stashes.
  expect({ ...noticeable(clone), stashes: '' }).toEqual(untouched);
});

test('a session may switch to another branch', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const shared = await sharedState((await checkout.open()).git);
  const recorded = await record(checkout, () => {
    checkout.write('on main.txt', 'main\n');
    checkout.commit('On main');
    checkout.git('tag', 'v1');
    checkout.git('checkout', '--quiet', '-b', 'feature/x');
    checkout.write('on feature.txt', 'feature\n');
    checkout.commit('On feature');
  });
  const changes = changedRefs(shared, await sharedState(recorded.repository.git));
  const after = withRefs(recorded.after, changes.refs);
  expect(Object.keys(after.refs)).toEqual(['refs/heads/main', 'refs/tags/v1']);
  const { before, objectsDir, repository } = recorded;
  const base = before.head.commit ?? '';
  const pack = await packDelta({ repository, objectsDir, base, before, after });
  expect(await apply(other, { before, after, pack })).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
  expect(other.line('for-each-ref', 'refs/heads', 'refs/tags')).toBe(
    checkout.line('for-each-ref', 'refs/heads', 'refs/tags'),
  );
});

test('a session may end on a branch without commits', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const recorded = await record(checkout, () => checkout.git('checkout', '--quiet', '--orphan', 'fresh'));
  expect(recorded.after.head).toEqual({ commit: null, branch: 'fresh' });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(other.git('status', '--porcelain', '--branch')).toBe(
    checkout.git('status', '--porcelain', '--branch'),
  );
});

test('hundreds of files are stored as one pack', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const recorded = await record(checkout, () => {
    for (let i = 0; i < 150; i++) checkout.write(`many/${i % 7}/${i}.txt`, lines(`file ${i}`, 5));
  });
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(noticeable(other)).toEqual(noticeable(checkout));
});

test('bytes are preserved despite conversions by attributes', async () => {
  const { checkout } = furnished();
  checkout.write('.gitattributes', '*.txt text eol=crlf\n*.id ident\n');
  checkout.write('dollar.id', '$Id$\n');
  checkout.commit('Convert');
  const other = checkout.clone('the second');
  const recorded = await record(checkout, () => {
    checkout.write('mixed.txt', 'unix\nwindows\r\n');
    checkout.write('dollar.id', '$Id: mine$\nmore\n');
  });
  const touched = recorded.repository.git.with({
    env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: `"${recorded.objectsDir}"` },
  });
  expect(
    await touched.ok(['diff-tree', '-r', '--name-only', recorded.before.tree, recorded.after.tree]),
  ).toBe('dollar.id\nmixed.txt\n');
  expect(await apply(other, recorded)).toMatchObject({ kind: 'exact' });
  expect(readFileSync(join(other.root, 'mixed.txt'), 'latin1')).toBe('unix\nwindows\r\n');
  expect(readFileSync(join(other.root, 'dollar.id'), 'latin1')).toBe('$Id: mine$\nmore\n');
});

test('only changed files are recorded despite conversions by settings', async () => {
  const { checkout } = furnished();
  checkout.git('config', 'core.autocrlf', 'true');
  checkout.write('plain.txt', 'one\r\ntwo\r\n');
  checkout.commit('Convert');
  const recorded = await record(checkout, () => checkout.write('new.txt', 'new\r\n'));
  const touched = recorded.repository.git.with({
    env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: `"${recorded.objectsDir}"` },
  });
  expect(
    await touched.ok(['diff-tree', '-r', '--name-only', recorded.before.tree, recorded.after.tree]),
  ).toBe('new.txt\n');
});

test('an index that git is writing is never replaced', async () => {
  const { checkout } = furnished();
  const other = checkout.clone('the second');
  const recorded = await record(checkout, nastySession);
  writeFileSync(join(other.root, '.git/index.lock'), '');
  await expect(apply(other, recorded)).rejects.toMatchObject({ code: 'GIT_FAILED' });
});

test('empty folders are created and removed', async () => {
  const { checkout, base } = furnished();
  const other = checkout.clone('the second');
  const first = await record(checkout, () => {
    mkdirSync(join(checkout.root, 'a/b'), { recursive: true });
    mkdirSync(join(checkout.root, 'build/out'), { recursive: true });
    checkout.write('build/ignored.o', 'o');
  });
  expect(first.after.emptyFolders).toEqual(['a/b']);
  await apply(other, first);
  expect(existsSync(join(other.root, 'a/b'))).toBe(true);
  rmSync(join(checkout.root, 'a'), { recursive: true });
  const { repository, objectsDir } = first;
  const after = await worktreeState({ repository, folder: checkout.root, objectsDir });
  const pack = await packDelta({ repository, objectsDir, base, before: first.after, after });
  await apply(other, { before: first.after, after, pack });
  expect(existsSync(join(other.root, 'a'))).toBe(false);
});
