import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createGit } from '../git.ts';
import { plainEnvironment, temporaryFolder } from '../test-support.ts';
import { packBase, restoreBase } from './pack.ts';
import { apply, Checkout, furnished, nastySession, noticeable, record } from './test-support.ts';

async function carried(checkout: Checkout, commit: string, tips: readonly string[]): Promise<Checkout> {
  const { pack, shallow } = await packBase({ repository: await checkout.open(), commit, tips });
  const folder = join(temporaryFolder('reprise base'), 'restored');
  const git = createGit({ cwd: temporaryFolder(), inheritEnv: plainEnvironment });
  await restoreBase({ git, folder, pack, shallow, branch: 'main', commit });
  return new Checkout(folder);
}

test('a commit is restored with its id and files, but without its history', async () => {
  const { checkout, base } = furnished();
  const { history: _, ...expected } = noticeable(checkout);
  const restored = await carried(checkout, base, []);
  expect(noticeable(restored)).toMatchObject(expected);
  expect(restored.line('rev-list', '--count', 'HEAD')).toBe('1');
  expect(restored.git('fsck', '--strict')).toBe('');
});

test('a session can be applied to a restored base', async () => {
  const { checkout, base } = furnished();
  const recorded = await record(checkout, nastySession);
  const restored = await carried(checkout, base, [recorded.after.head.commit ?? '']);
  expect(await apply(restored, recorded)).toEqual({ kind: 'exact', state: recorded.after });
  const { history: _, ...expected } = noticeable(checkout);
  expect(noticeable(restored)).toMatchObject(expected);
  expect(restored.git('fsck', '--strict', '--no-dangling')).toBe('');
});

test('history reaches down to the parent of a base that a session amended', async () => {
  const { checkout, base } = furnished();
  const recorded = await record(checkout, () => {
    checkout.write('src/a.txt', 'amended\n');
    checkout.git('commit', '--quiet', '--all', '--amend', '--message=Furnish better');
  });
  const restored = await carried(checkout, base, [recorded.after.head.commit ?? '']);
  expect(restored.line('log', '--format=%s')).toBe('Furnish\nBegin');
  expect(await apply(restored, recorded)).toMatchObject({ kind: 'exact' });
  expect(noticeable(restored)).toEqual(noticeable(checkout));
  expect(restored.git('fsck', '--strict', '--no-dangling')).toBe('');
});

test('history reaches down to an old commit that a session checked out', async () => {
  const { checkout, base } = furnished();
  const first = checkout.line('rev-parse', 'HEAD~1');
  const restored = await carried(checkout, base, [first]);
  expect(restored.line('log', '--format=%s')).toBe('Furnish\nBegin');
});

test('the history of a merged branch is cut off too', async () => {
  const { checkout } = furnished();
  checkout.git('checkout', '--quiet', '-b', 'side', 'HEAD~1');
  checkout.write('side.txt', 'side\n');
  checkout.commit('Side');
  checkout.git('checkout', '--quiet', 'main');
  checkout.git('merge', '--quiet', '--no-ff', '--message=Merge', 'side');
  const top = checkout.line('rev-parse', 'HEAD');
  const restored = await carried(checkout, top, [checkout.line('rev-parse', 'HEAD^1')]);
  expect(restored.line('log', '--format=%s').split('\n').sort()).toEqual(['Furnish', 'Merge', 'Side']);
  expect(restored.git('fsck', '--strict')).toBe('');
});

test('all of history stays if it cannot be cut cleanly', async () => {
  const { checkout, base } = furnished();
  const top = checkout.line('commit-tree', '-p', base, '-p', `${base}^`, '-m', 'Odd', `${base}^{tree}`);
  const restored = await carried(checkout, top, [base]);
  expect(restored.git('log', '--format=%H %P')).toBe(checkout.git('log', '--format=%H %P', top));
  expect(restored.git('fsck', '--strict')).toBe('');
});

test('a base from a shallow repository stays cut off at the same commit', async () => {
  const { checkout, base } = furnished();
  const once = await carried(checkout, base, []);
  once.write('more.txt', 'more\n');
  const top = once.commit('More');
  const twice = await carried(once, top, [base]);
  expect(twice.line('log', '--format=%s')).toBe('More\nFurnish');
  expect(twice.git('fsck', '--strict')).toBe('');
});

test('the same base gives the same bytes, however its objects are stored', async () => {
  const { checkout, base } = furnished();
  const other = checkout.clone('the second');
  other.git('repack', '-a', '-d', '-f', '--quiet', '--window=50');
  const [one, two] = await Promise.all(
    [checkout, other].map(async each => packBase({ repository: await each.open(), commit: base, tips: [] })),
  );
  expect(one).toEqual(two);
});

test('a base above the limit is refused with a message that names both sizes', async () => {
  const { checkout, base } = furnished();
  const repository = await checkout.open();
  await expect(packBase({ repository, commit: base, tips: [], maxBytes: 1000 })).rejects.toMatchObject({
    code: 'CAPTURE_REFUSED',
    message: expect.stringMatching(
      /^the pack of commit [0-9a-f]{12} is 0\.\d+ MB, more than the limit of 0\.001 MB$/,
    ),
  });
});
