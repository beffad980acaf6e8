import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markedWith } from '../../src/process/tree.ts';
import { createProject, type TestProject, until } from './run-inline.ts';

/** A project whose folder is where the demo makes its own. */
function theatre(): { readonly project: TestProject; readonly env: { readonly TMPDIR: string } } {
  const project = createProject();
  return { project, env: { TMPDIR: project.root } };
}

const demosIn = ({ root }: TestProject): readonly string[] =>
  readdirSync(root).filter(name => name.startsWith('reprise-demo-'));

/** What the demo says itself, without what the commands print that it calls. */
const narration = (text: string): string =>
  text
    .replace(/^\d\d:\d\d:\d\d .*\n/gm, '')
    .replace(/\$ reprise init\n[\s\S]*?reprise worker\n/, '$ reprise init\n')
    .replace(/(^ {2}[0-9a-f]{7,} .*\n)+/gm, '<log>\n');

describe('reprise demo', () => {
  it('is killed, goes on, solves a conflict and lands everything, with no account', async () => {
    const { project, env } = theatre();
    const { code, stdout, stderr } = await project.run(['demo'], { env });
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('');
    const [name = ''] = demosIn(project);
    const root = join(project.root, name);
    const cli = join(process.cwd(), 'dist/cli/main.js');
    const text = stderr.replaceAll(root, '<demo>').replaceAll(cli, '<cli>');
    expect(text).toContain('made .reprise/agents/implement.md');
    expect(text).toContain(
      'conflicts with main: "Greet with an exclamation mark" does not fit onto main: greet.mjs',
    );
    expect(text.match(/ended 1 process that the last owner had left running/g)).toHaveLength(2);
    expect(narration(text)).toMatchInlineSnapshot(`
      "Two workers, three tasks, one kill -9 and one conflict, in a new repository:
      <demo>

      $ reprise init

      Three tasks are on main. A script plays the agent, so no account is needed.
        issues/say-hello.md    P0  Say Hello instead of Hi
        issues/exclaim.md      P1  Greet with an exclamation mark
        issues/write-guide.md  P2  Write a guide
      The first two change the same line.

      $ reprise worker --workers 2 --until-idle

      kill -9: one task has landed, and the workers were busy with the others.

      $ reprise worker --workers 2 --until-idle

      How often the agent was at work on each:
        say-hello    once
        exclaim      3 times: killed in the middle, done, then the conflict
        write-guide  2 times: killed in the middle, then done
      What is on main now, and the line that two of them changed:
      <log>
        export const greet = name => 'Hello, ' + name + '!';

      Look around:
        cd <demo>
        node <cli> tasks
      "
    `);
    const git = (...args: readonly string[]) =>
      execFileSync('git', args, { cwd: root, encoding: 'utf8', env: { PATH: process.env['PATH'] } });
    expect(git('log', '--format=%s', 'main').trim().split('\n').sort()).toEqual([
      'Greet people',
      'Greet with an exclamation mark',
      'Say Hello instead of Hi',
      'Write a guide',
      'Write down what is to be done',
    ]);
    expect(git('rev-list', '--merges', '--count', 'main')).toBe('0\n');
    expect(git('status', '--porcelain')).toBe('');
    expect(git('branch', '--format=%(refname:short)')).toBe('main\n');
    expect(git('worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(1);
    for (const line of narration(text).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('leaves nothing behind with --clean, also when it is interrupted', async () => {
    const { project, env } = theatre();
    const demo = project.start(['demo', '--clean'], { env });
    await until(() => demo.stderr.includes('This will take a while.'));
    const [name = ''] = demosIn(project);
    const mark = { DEMO_STAGE: join(project.root, name, '.git/demo') };
    demo.kill('SIGINT');
    const { code, stderr } = await demo.ended;
    expect(code, stderr).toBe(130);
    expect(stderr).toContain('error[CANCELLED]: the demo was interrupted');
    expect(demosIn(project)).toEqual([]);
    await until(() => markedWith(mark).length === 0);
  });
});
