import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../test-support.ts';
import { stateOfCommit, worktreeState } from './capture.ts';
import { Checkout, furnished, lines, nastySession, noticeable } from './test-support.ts';

const stateOf = async (checkout: Checkout, folder = checkout.root) => {
  const objectsDir = join(temporaryFolder('reprise objects'), 'objects');
  return worktreeState({ repository: await checkout.open(), folder, objectsDir });
};

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();

test('the state of a fresh checkout is known without reading its files', async () => {
  const { checkout, base } = furnished();
  const repository = await checkout.open();
  expect(await stateOfCommit({ repository, commit: base, branch: 'main' })).toEqual(await stateOf(checkout));
});

test('HEAD is read if it is detached, on a branch, or on a packed branch', async () => {
  const { checkout, base } = furnished();
  checkout.git('pack-refs', '--all');
  expect((await stateOf(checkout)).head).toEqual({ commit: base, branch: 'main' });
  checkout.git('checkout', '--quiet', '-b', 'a/b');
  expect((await stateOf(checkout)).head).toEqual({ commit: base, branch: 'a/b' });
  checkout.git('checkout', '--quiet', '--detach');
  expect((await stateOf(checkout)).head).toEqual({ commit: base, branch: null });
});

test('an existing stash is part of the states before and after a session', async () => {
  const { checkout, base } = furnished();
  checkout.write('src/a.txt', 'stashed\n');
  checkout.git('stash', 'push', '--quiet', '--message=of the user');
  const repository = await checkout.open();
  const state = await stateOfCommit({ repository, commit: base, branch: 'main' });
  expect(state.stashes).toEqual([
    { commit: checkout.line('rev-parse', 'stash@{0}'), message: 'On main: of the user' },
  ]);
  expect(await stateOf(checkout)).toEqual(state);
});

test('a capture changes no object, no index and no file time', async () => {
  const { checkout } = furnished();
  nastySession(checkout);
  const gitFolder = join(checkout.root, '.git');
  const untouched = { ...noticeable(checkout), index: readFileSync(join(gitFolder, 'index')) };
  const files = filesBelow(gitFolder);
  await stateOf(checkout);
  expect(filesBelow(gitFolder)).toEqual(files);
  expect({ ...noticeable(checkout), index: readFileSync(join(gitFolder, 'index')) }).toEqual(untouched);
});

test('the same worktree gives the same state', async () => {
  const { checkout } = furnished();
  nastySession(checkout);
  expect(await stateOf(checkout)).toEqual(await stateOf(checkout));
});

test('a change right after the checkout that keeps the size is detected', async () => {
  const { checkout } = furnished();
  const folder = join(checkout.root, '..', 'workspace');
  checkout.git('worktree', 'add', '--quiet', '-b', 'work', folder);
  const work = new Checkout(folder);
  work.write('src/a.txt', lines('a', 40).replace('a 3\n', 'b 3\n'));
  const { tree } = await stateOf(checkout, folder);
  work.git('add', '--all');
  expect(tree).toBe(work.line('write-tree'));
});

test('a file that was only touched counts as unchanged', async () => {
  const { checkout } = furnished();
  const clean = await stateOf(checkout);
  const then = new Date('2026-01-01T00:00:00Z');
  utimesSync(join(checkout.root, 'src/a.txt'), then, then);
  expect(await stateOf(checkout)).toEqual(clean);
});

test('a change that keeps size and time is detected', async () => {
  const { checkout } = furnished();
  const clean = await stateOf(checkout);
  const then = new Date('2026-01-01T00:00:00Z');
  const file = join(checkout.root, 'src/a.txt');
  utimesSync(file, then, then);
  checkout.git('update-index', '--refresh');
  utimesSync(join(checkout.root, '.git/index'), then, then);
  checkout.write('src/a.txt', lines('a', 40).replace('a 3\n', 'b 3\n'));
  utimesSync(file, then, then);
  expect((await stateOf(checkout)).tree).not.toBe(clean.tree);
});

test.each([
  ['assume-unchanged', []],
  ['skip-worktree', []],
  ['assume-unchanged', ['update-index', '--index-version=4']],
  ['skip-worktree', ['update-index', '--index-version=4']],
  ['assume-unchanged', ['update-index', '--split-index']],
])('an edit that %s would hide is detected (%s)', async (bit, prepare) => {
  const { checkout } = furnished();
  if (prepare.length > 0) checkout.git(...prepare);
  checkout.git('update-index', `--${bit}`, 'src/a.txt', 'src/b.txt');
  const clean = await stateOf(checkout);
  checkout.write('src/b.txt', 'hidden\n');
  expect(checkout.git('status', '--porcelain')).toBe('');
  expect((await stateOf(checkout)).tree).not.toBe(clean.tree);
});

test('files outside of a sparse checkout do not count as deleted', async () => {
  const { checkout, base } = furnished();
  checkout.git('sparse-checkout', 'set', '--no-cone', '/src/');
  const repository = await checkout.open();
  const whole = await stateOfCommit({ repository, commit: base, branch: 'main' });
  expect((await stateOf(checkout)).tree).toBe(whole.tree);
});

test('a state does not contain ignored files', async () => {
  const { checkout } = furnished();
  const clean = await stateOf(checkout);
  checkout.write('debug.log', 'ignored\n');
  checkout.write('.git/info/exclude', 'private\n');
  checkout.write('private/key', 'ignored\n');
  expect(await stateOf(checkout)).toEqual(clean);
});

test('a worktree is found even if its session removed the link to it', async () => {
  const { checkout } = furnished();
  const folder = join(checkout.root, '..', 'workspace');
  checkout.git('worktree', 'add', '--quiet', '-b', 'work', folder);
  rmSync(join(folder, '.git'));
  expect(await stateOf(checkout, folder)).toMatchObject({ head: { branch: 'work' } });
});

test('a repository with SHA-256 ids is captured too', async () => {
  const root = join(temporaryFolder('reprise long'), 'repository');
  mkdirSync(root);
  const checkout = new Checkout(root);
  checkout.git('init', '--quiet', '--object-format=sha256', '--initial-branch=main');
  checkout.write('a.txt', 'one\n');
  const commit = checkout.commit('Begin');
  const repository = await checkout.open();
  expect(await stateOf(checkout)).toEqual(await stateOfCommit({ repository, commit, branch: 'main' }));
  checkout.write('a.txt', 'two\n');
  expect((await stateOf(checkout)).tree).toMatch(/^[0-9a-f]{64}$/);
});

test('a folder that is not a worktree is refused', async () => {
  const { checkout } = furnished();
  await expect(stateOf(checkout, join(checkout.root, 'src'))).rejects.toMatchObject({
    code: 'CAPTURE_REFUSED',
  });
});

test.each([
  ['with a commit', ['commit', '--quiet', '--allow-empty', '--message=Begin']],
  ['without a commit', ['status']],
])('an embedded repository %s is refused by name', async (_, command) => {
  const { checkout } = furnished();
  const inner = new Checkout(join(checkout.root, 'vendor/other'));
  mkdirSync(inner.root, { recursive: true });
  inner.git('init', '--quiet');
  inner.write('file.txt', 'inside\n');
  inner.git(...command);
  await expect(stateOf(checkout)).rejects.toMatchObject({
    code: 'CAPTURE_REFUSED',
    message: `there is another repository in ${checkout.root}: vendor/other`,
  });
});

test('a workspace that was turned into its own repository is refused', async () => {
  const { checkout } = furnished();
  const folder = join(checkout.root, '..', 'workspace');
  checkout.git('worktree', 'add', '--quiet', '-b', 'work', folder);
  rmSync(join(folder, '.git'));
  new Checkout(folder).git('init', '--quiet');
  await expect(stateOf(checkout, folder)).rejects.toMatchObject({ code: 'CAPTURE_REFUSED' });
});

/** Creates two branches that change the same line. */
function quarrel(): Checkout {
  const { checkout } = furnished();
  checkout.git('checkout', '--quiet', '-b', 'one');
  checkout.write('src/a.txt', 'one\n');
  checkout.commit('One');
  checkout.git('checkout', '--quiet', 'main');
  checkout.write('src/a.txt', 'two\n');
  checkout.commit('Two');
  return checkout;
}

test.each([
  ['merge', ['merge', 'one']],
  ['rebase', ['rebase', 'one']],
  ['cherry-pick', ['cherry-pick', 'one']],
])('an unfinished %s is refused, before and after its conflicts are resolved', async (name, command) => {
  const checkout = quarrel();
  expect(() => checkout.git(...command)).toThrow();
  const refusal = { code: 'CAPTURE_REFUSED', message: `a ${name} in ${checkout.root} is unfinished` };
  await expect(stateOf(checkout)).rejects.toMatchObject(refusal);
  checkout.git('add', '--all');
  await expect(stateOf(checkout)).rejects.toMatchObject(refusal);
});

test('files with conflicts from a stash are refused by name', async () => {
  const checkout = quarrel();
  checkout.write('src/a.txt', 'three\n');
  checkout.git('stash', 'push', '--quiet');
  checkout.git('checkout', '--quiet', 'one');
  expect(() => checkout.git('stash', 'pop')).toThrow();
  await expect(stateOf(checkout)).rejects.toMatchObject({
    message: expect.stringMatching(/is unfinished: src\/a\.txt$/),
  });
});

test.skipIf(process.getuid?.() === 0)('a file that cannot be read is refused', async () => {
  const { checkout } = furnished();
  checkout.write('closed.txt', 'closed\n');
  chmodSync(join(checkout.root, 'closed.txt'), 0);
  await expect(stateOf(checkout)).rejects.toMatchObject({ code: 'CAPTURE_REFUSED' });
});
