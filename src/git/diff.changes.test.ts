import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { changesSince } from './diff.ts';
import { Lab } from './test-support.ts';

it('lists files that commits added, changed, renamed and deleted', async () => {
  const lab = new Lab();
  lab.write('old name.txt', 'a\nb\nc\nd\ne\n');
  lab.write('gone.txt', 'gone\n');
  const base = lab.commit(lab.root, 'b.txt', 'b\n');
  renameSync(join(lab.root, 'old name.txt'), join(lab.root, 'new\nname.txt'));
  rmSync(join(lab.root, 'gone.txt'));
  lab.write('a.txt', 'two\n');
  lab.commit(lab.root, '-ä.txt', 'ä\n');
  const { git } = await lab.open();
  const changes = await changesSince(git, { base });
  expect(changes).toMatchObject({
    files: [
      { kind: 'modified', path: 'a.txt' },
      { kind: 'deleted', path: 'gone.txt' },
      { kind: 'renamed', path: 'new\nname.txt', from: 'old name.txt' },
      { kind: 'added', path: '-ä.txt' },
    ].toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    insertions: 2,
    deletions: 2,
    patch: { truncated: false },
  });
  expect(changes.patch.text).toContain('-one\n+two\n');
});

it('returns empty changes, and truncates a patch above the limit', async () => {
  const lab = new Lab();
  const { git } = await lab.open();
  const base = lab.git('rev-parse', 'HEAD');
  expect(await changesSince(git, { base })).toEqual({
    files: [],
    insertions: 0,
    deletions: 0,
    patch: { text: '', truncated: false },
  });
  lab.commit(lab.root, 'a.txt', 'x\n'.repeat(1000));
  const { patch } = await changesSince(git, { base, patchLimit: 100 });
  expect(patch).toMatchObject({ text: expect.stringMatching(/^.{100}$/s), truncated: true });
});

it('rejects an option in place of a base', async () => {
  const { git } = await new Lab().open();
  await expect(changesSince(git, { base: '--output=x' })).rejects.toMatchObject({ code: 'GIT_FAILED' });
});
