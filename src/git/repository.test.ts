import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { resolveCommit } from './refs.ts';
import { openRepository } from './repository.ts';
import { Lab, plainEnvironment, temporaryFolder } from './test-support.ts';

const open = (cwd: string) => openRepository({ cwd, inheritEnv: plainEnvironment });

describe('opening a repository', () => {
  it.each(['plain', 'with spaces', 'ünïcödé', 'a\nnewline', 'quote\'s "', '--bare'])(
    'works in a folder named %j',
    async name => {
      const lab = new Lab();
      const root = join(lab.folder, name);
      lab.gitAt(lab.folder, 'clone', '--quiet', '--', lab.root, root);
      mkdirSync(join(root, 'below'));
      const { git, ...places } = await open(join(root, 'below'));
      expect(places).toEqual({ root, commonDir: join(root, '.git') });
      expect(git.cwd).toBe(root);
    },
  );

  it('follows the settings of the repository', async () => {
    const lab = new Lab();
    const elsewhere = temporaryFolder();
    lab.git('config', 'core.worktree', elsewhere);
    expect(await open(lab.root)).toMatchObject({ root: elsewhere, commonDir: join(lab.root, '.git') });
    lab.git('config', '--unset', 'core.worktree');
    expect(await open(lab.root)).toMatchObject({ root: lab.root });
    lab.git('config', 'core.bare', 'true');
    expect(await open(lab.root)).toMatchObject({ root: undefined, commonDir: join(lab.root, '.git') });
  });

  it('ignores a folder that only looks like a repository', async () => {
    const lab = new Lab();
    for (const name of ['empty', 'without a HEAD']) {
      const folder = join(lab.root, name);
      mkdirSync(join(folder, '.git', name === 'empty' ? '.' : 'objects'), { recursive: true });
      expect(await open(folder)).toMatchObject({ root: lab.root });
    }
  });

  it('fails for a repository format that git does not know', async () => {
    const lab = new Lab();
    lab.git('config', 'core.repositoryFormatVersion', '7');
    await expect(open(lab.root)).rejects.toMatchObject({ code: 'NOT_A_REPOSITORY' });
  });

  it('finds the shared git folder of a linked worktree', async () => {
    const lab = new Lab();
    const linked = join(lab.folder, 'linked');
    lab.git('worktree', 'add', '--quiet', '--detach', linked);
    expect(await open(linked)).toMatchObject({ root: linked, commonDir: join(lab.root, '.git') });
  });

  it('finds no checkout in a bare repository', async () => {
    const bare = join(temporaryFolder(), 'bare.git');
    mkdirSync(bare);
    new Lab().gitAt(bare, 'init', '--quiet', '--bare');
    expect(await open(bare)).toMatchObject({ root: undefined, commonDir: bare });
  });

  it('fails outside a repository', async () => {
    const cwd = temporaryFolder();
    await expect(open(cwd)).rejects.toMatchObject({
      code: 'NOT_A_REPOSITORY',
      hint: 'run it inside a git repository, or make one: git init',
    });
  });
});

describe('resolving a commit', () => {
  it.each(['nothing', '--all', '-x', 'main:a.txt', '$(touch x)', ''])('finds none for %j', async name => {
    const { git } = await new Lab().open();
    expect(await resolveCommit(git, name)).toBeUndefined();
  });

  it('accepts a branch, an id and an expression', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    const id = lab.git('rev-parse', 'HEAD');
    for (const name of ['main', 'HEAD', id, id.slice(0, 8), 'main^0'])
      expect(await resolveCommit(git, name)).toBe(id);
  });
});
