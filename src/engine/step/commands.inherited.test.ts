import { describe, expect, it } from 'vitest';
import { inheritedInWorkspace } from './commands.ts';

describe('the inherited environment in a workspace', () => {
  it('does not point to the checkout of the user', () => {
    const env = { PATH: '/bin', GIT_DIR: '/repo/.git', GIT_WORK_TREE: '/repo', PWD: '/repo', OLDPWD: '/' };
    expect(inheritedInWorkspace(env, '/repo/.reprise/workspaces/w/one')).toEqual({
      PATH: '/bin',
      PWD: '/repo/.reprise/workspaces/w/one',
      GIT_CEILING_DIRECTORIES: '/repo/.reprise/workspaces/w',
    });
  });

  it('keeps the ceiling directories of the user', () => {
    expect(inheritedInWorkspace({ GIT_CEILING_DIRECTORIES: '/home' }, '/a/b')).toMatchObject({
      GIT_CEILING_DIRECTORIES: '/a:/home',
    });
  });
});
