import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { anyChanged, anyChangedNow } from './diff.ts';
import { createGit } from './git.ts';
import { Lab, plainEnvironment } from './test-support.ts';

/** Checks that the synchronous and the asynchronous function agree. */
async function isAnyChanged(lab: Lab, ...files: readonly string[]): Promise<boolean> {
  const git = createGit({ cwd: lab.root, inheritEnv: plainEnvironment });
  const later = await anyChanged(git, files);
  expect(anyChangedNow({ cwd: lab.root, env: plainEnvironment }, files)).toBe(later);
  return later;
}

it('considers the given files and no others', async () => {
  const lab = new Lab();
  lab.write('a b.txt', 'old\n');
  lab.write('*.txt', 'old\n');
  lab.git('add', '--all');
  lab.git('commit', '--quiet', '--message', 'Files');
  expect(await isAnyChanged(lab, 'a b.txt', '*.txt')).toBe(false);
  lab.write('a b.txt', 'new\n');
  expect(await isAnyChanged(lab, 'a b.txt')).toBe(true);
  expect(await isAnyChanged(lab, '*.txt')).toBe(false);
  lab.git('add', '--all');
  expect(await isAnyChanged(lab, '*.txt', 'a b.txt')).toBe(true);
  lab.git('commit', '--quiet', '--message', 'New');
  expect(await isAnyChanged(lab, 'a b.txt')).toBe(false);
  lab.write('untracked.txt', '');
  expect(await isAnyChanged(lab, 'untracked.txt')).toBe(true);
  rmSync(join(lab.root, '*.txt'));
  expect(await isAnyChanged(lab, '*.txt')).toBe(true);
});

it('returns false synchronously if git fails', () => {
  const lab = new Lab();
  expect(anyChangedNow({ cwd: join(lab.root, 'gone'), env: plainEnvironment }, ['a'])).toBe(false);
});
