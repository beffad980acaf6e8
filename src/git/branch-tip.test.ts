import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tipOfBranch } from './branch-tip.ts';
import type { Repository } from './repository.ts';
import { Lab } from './test-support.ts';

/** A repository whose git must not be asked. */
const filesOnly = (repository: Repository): Repository => ({
  ...repository,
  git: new Proxy(repository.git, {
    get: (_, name) => () => {
      throw new Error(`asked git to ${String(name)}`);
    },
  }),
});

describe('the tip of a branch', () => {
  it('is read without a process, loose or packed', async () => {
    const lab = new Lab();
    const repository = filesOnly(await lab.open());
    lab.git('branch', 'main2');
    lab.git('branch', 'a/ünï');
    const first = lab.git('rev-parse', 'main');
    expect(await tipOfBranch(repository, 'main')).toBe(first);
    lab.git('pack-refs', '--all', '--prune');
    for (const branch of ['main', 'main2', 'a/ünï'])
      expect(await tipOfBranch(repository, branch)).toBe(first);
    const second = lab.commit(lab.root, 'b.txt', 'b\n');
    expect(await tipOfBranch(repository, 'main')).toBe(second);
    expect(await tipOfBranch(repository, 'main2')).toBe(first);
  });

  it('is asked of git where files do not tell', async () => {
    const lab = new Lab();
    const repository = await lab.open();
    const tip = lab.git('rev-parse', 'main');
    lab.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/main');
    expect(await tipOfBranch(repository, 'alias')).toBe(tip);
    // As it is with refs in tables: what is in the files means nothing.
    mkdirSync(join(lab.root, '.git/reftable'));
    await expect(tipOfBranch(filesOnly(repository), 'main')).rejects.toThrow('asked git to');
    expect(await tipOfBranch(repository, 'main')).toBe(tip);
  });

  it('is none if there is no such branch', async () => {
    const lab = new Lab();
    const repository = await lab.open();
    lab.git('branch', 'folder/x');
    lab.git('pack-refs', '--all');
    writeFileSync(join(lab.root, '.git/refs/heads/half'), '');
    for (const name of ['other', 'folder', 'half', '--all', '../main', '', 'x\nmain']) {
      expect(await tipOfBranch(repository, name)).toBeUndefined();
    }
  });
});
