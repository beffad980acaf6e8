import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readFilesAt } from './refs.ts';
import { Lab } from './test-support.ts';

describe('the files of a folder at a commit', () => {
  it('are listed without those in subfolders', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    lab.write('issues/b c.md', 'b\n');
    lab.write('issues/ünï 日本.md', 'ü\r\nno newline');
    lab.write('issues/empty.md', '');
    lab.write('issues/same.md', 'b\n');
    lab.write('issues/done/old.md', 'old\n');
    lab.write('issues2/no.md', 'no\n');
    symlinkSync('b c.md', join(lab.root, 'issues/link.md'));
    const commit = lab.commit(lab.root, 'issues/a.md', 'a\n');
    lab.commit(lab.root, 'issues/a.md', 'later\n');
    lab.write('issues/a.md', 'not committed\n');
    const files = await readFilesAt({ git, commit, folder: 'issues' });
    expect(files.map(({ path, text }) => [path, text])).toEqual([
      ['issues/a.md', 'a\n'],
      ['issues/b c.md', 'b\n'],
      ['issues/empty.md', ''],
      ['issues/same.md', 'b\n'],
      ['issues/ünï 日本.md', 'ü\r\nno newline'],
    ]);
    expect(files[0]).toEqual({
      path: 'issues/a.md',
      blob: lab.git('rev-parse', `${commit}:issues/a.md`),
      bytes: 2,
      text: 'a\n',
    });
    for (const folder of ['./issues/', 'issues//']) {
      expect(await readFilesAt({ git, commit, folder })).toEqual(files);
    }
    expect(await readFilesAt({ git, commit, folder: 'issues/done' })).toMatchObject([{ text: 'old\n' }]);
    expect(await readFilesAt({ git, commit, folder: '.' })).toMatchObject([{ path: 'a.txt' }]);
    expect(await readFilesAt({ git, commit, folder: 'no such' })).toEqual([]);
    expect(await readFilesAt({ git, commit, folder: 'a.txt' })).toEqual([]);
  });

  it('have no text above the size limit', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    mkdirSync(join(lab.root, 'issues'));
    writeFileSync(join(lab.root, 'issues/large.md'), 'x'.repeat(1024 * 1024 + 1));
    lab.write('issues/limit.md', 'x'.repeat(1024 * 1024));
    const commit = lab.commit(lab.root, 'issues/small.md', 'small\n');
    const files = await readFilesAt({ git, commit, folder: 'issues' });
    expect(files.map(({ path, bytes, text }) => [path, bytes, text?.length])).toEqual([
      ['issues/large.md', 1024 * 1024 + 1, undefined],
      ['issues/limit.md', 1024 * 1024, 1024 * 1024],
      ['issues/small.md', 6, 6],
    ]);
    expect(await readFilesAt({ git, commit, folder: 'issues', maxBytes: 5 })).toMatchObject([
      { text: undefined },
      { text: undefined },
      { text: undefined },
    ]);
  });

  it('are read with two processes, or one if there are none', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    for (let i = 0; i < 20; i++) lab.write(`:(glob)*/${i}.md`, `${i}\n`);
    const commit = lab.commit(lab.root, ':(glob)*/x.md', 'x\n');
    const commands: string[] = [];
    const counting = {
      ...git,
      ok: (args: readonly string[], options?: object) => {
        commands.push(args.find(arg => !arg.startsWith('-')) ?? '');
        return git.ok(args, options);
      },
    };
    expect(await readFilesAt({ git: counting, commit, folder: ':(glob)*' })).toHaveLength(21);
    expect(await readFilesAt({ git: counting, commit, folder: 'none' })).toEqual([]);
    expect(commands).toEqual(['ls-tree', 'cat-file', 'ls-tree']);
    await expect(readFilesAt({ git, commit: 'no-such', folder: '.' })).rejects.toMatchObject({
      code: 'GIT_FAILED',
    });
  });
});
