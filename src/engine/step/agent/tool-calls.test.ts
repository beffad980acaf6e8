import { describe, expect, it } from 'vitest';
import { ToolCalls } from './tool-calls.ts';

const root = '/srv/project';
const folder = '/srv/project/.reprise/workspaces/w/r/a';

const calls = (...inputs: readonly (string | object)[]): ToolCalls => {
  const made = new ToolCalls(folder);
  for (const input of inputs)
    made.add({
      type: 'tool-start',
      id: '1',
      name: typeof input === 'string' ? 'Bash' : 'Write',
      input: (typeof input === 'string' ? { command: input } : input) as never,
    });
  return made;
};

describe('a tool call', () => {
  it.each([
    `echo x >> ${root}/src/a.ts`,
    `cd ${root} && sed -i s/x/y/ src/a.ts`,
    `cd ${root}/src; echo x > a.ts`,
    `rm -rf ${root}/src`,
    'echo x > ../../../../../src/a.ts',
    'cd "$(git rev-parse --git-common-dir)/.." && echo x > src/a.ts',
    { file_path: `${root}/src/a.ts`, content: 'x' },
  ])('names a file of the main checkout: %j', input => {
    expect(calls(input).namesFile(root, 'src/a.ts')).toBe(true);
  });

  it.each([
    'echo x > src/a.ts',
    `echo x > ${folder}/src/a.ts`,
    `cd ${root} && npm test`,
    `cat ${root}/src/b.ts`,
    { file_path: 'notes.md', content: `see ${root}/src/a.ts` },
  ])('does not name a file of the main checkout: %j', input => {
    expect(calls(input).namesFile(root, 'src/a.ts')).toBe(false);
  });

  it('names an untracked folder by a file in it', () => {
    expect(calls(`echo x > ${root}/new/deep/a.ts`).namesFile(root, 'new/')).toBe(true);
  });

  it('changes a ref only with a command that can', () => {
    expect(calls('git branch -f release HEAD~1').changesRef('release')).toBe(true);
    expect(calls('git update-ref refs/heads/release HEAD').changesRef('release')).toBe(true);
    expect(calls('git log release').changesRef('release')).toBe(false);
    expect(calls('git branch -f release-2').changesRef('release')).toBe(false);
    expect(calls('git checkout -b fix').changesRef('main')).toBe(false);
  });

  it('that only reads is ignored', () => {
    const reading = new ToolCalls(folder);
    reading.add({ type: 'tool-start', id: '1', name: 'Read', input: { file_path: `${root}/src/a.ts` } });
    expect(reading.namesFile(root, 'src/a.ts')).toBe(false);
  });

  it('to EnterWorktree explains a worktree of Claude Code', () => {
    const entering = new ToolCalls(folder);
    entering.add({ type: 'tool-start', id: '1', name: 'EnterWorktree', input: {} });
    expect(entering.namesWorktree(`${root}/.claude/worktrees/x`)).toBe(true);
    expect(entering.namesWorktree(`${root}/.reprise/workspaces/w/r/b`)).toBe(false);
  });
});
