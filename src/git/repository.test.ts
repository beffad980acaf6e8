import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openRepository, resolveCommit } from './repository.ts';
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

  it('knows that a linked worktree shares the git folder of the first', async () => {
    const lab = new Lab();
    const linked = join(lab.folder, 'linked');
    lab.git('worktree', 'add', '--quiet', '--detach', linked);
    expect(await open(linked)).toMatchObject({ root: linked, commonDir: join(lab.root, '.git') });
  });

  it('knows that a bare one has no checkout', async () => {
    const bare = join(temporaryFolder(), 'bare.git');
    mkdirSync(bare);
    new Lab().gitAt(bare, 'init', '--quiet', '--bare');
    expect(await open(bare)).toMatchObject({ root: undefined, commonDir: bare });
  });

  it('is refused outside of one', async () => {
    const cwd = temporaryFolder();
    await expect(open(cwd)).rejects.toMatchObject({
      code: 'NOT_A_REPOSITORY',
      hint: 'run it inside a git repository, or make one: git init',
    });
  });
});

describe('a commit', () => {
  it.each(['nothing', '--all', '-x', 'main:a.txt', '$(touch x)', ''])('is not what %j means', async name => {
    const { git } = await new Lab().open();
    expect(await resolveCommit(git, name)).toBeUndefined();
  });

  it('is found by branch, id and expression', async () => {
    const lab = new Lab();
    const { git } = await lab.open();
    const id = lab.git('rev-parse', 'HEAD');
    for (const name of ['main', 'HEAD', id, id.slice(0, 8), 'main^0'])
      expect(await resolveCommit(git, name)).toBe(id);
  });
});
