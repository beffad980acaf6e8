import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markedWith } from '../../src/process/tree.ts';
import { createProject, type TestProject, until } from './run-inline.ts';

/** Empty folder in which the demo creates its repository. */
function demoFolder(): { readonly project: TestProject; readonly env: { readonly TMPDIR: string } } {
  const project = createProject();
  return { project, env: { TMPDIR: project.root } };
}

const demosIn = ({ root }: TestProject): readonly string[] =>
  readdirSync(root).filter(name => name.startsWith('reprise-demo-'));

/** Text of the demo itself, without the output of the commands that it runs. */
const narration = (text: string): string =>
  text
    .replace(/^\d\d:\d\d:\d\d .*\n/gm, '')
    .replace(/(\$ reprise resume\n)[\s\S]*?(?=\nHow often)/, '$1')
    .replace(/\$ reprise init\n[\s\S]*?reprise worker\n/, '$ reprise init\n')
    .replace(/(^ {2}[0-9a-f]{7,} .*\n)+/gm, '<log>\n');

describe('reprise demo', () => {
  it('kills its workers, resumes, resolves a conflict and lands every task', async () => {
    const { project, env } = demoFolder();
    const { code, stdout, stderr } = await project.run(['demo'], { env });
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('');
    const [name = ''] = demosIn(project);
    const root = join(project.root, name);
    const cli = join(process.cwd(), 'dist/cli/main.js');
    const text = stderr.replaceAll(root, '<demo>').replaceAll(cli, '<cli>');
    expect(text).toContain('created .reprise/agents/implement.md');
    expect(text).toContain(
      'conflicts with main: cannot rebase "Greet with an exclamation mark" onto main: conflicts in greet.mjs',
    );
    expect(text.match(/stopped 1 orphaned process from the previous run/g)).toHaveLength(2);
    expect(narration(text)).toMatchInlineSnapshot(`
      "Two workers, three tasks, one kill -9 and one conflict, in a new repository:
      <demo>

      $ reprise init

      Three tasks are on main. The agent is a script, so you need no account.
        issues/say-hello.md    P0  Say Hello instead of Hi
        issues/exclaim.md      P1  Greet with an exclamation mark
        issues/write-guide.md  P2  Write a guide
      The first two change the same line.

      $ reprise worker --workers 2 --until-idle

      kill -9: one task has landed, and the workers were working on the other two.

      $ reprise worker --workers 2 --until-idle

      How often the agent was started for each task:
        say-hello    once
        exclaim      3 times: killed, completed, then resolved the conflict
        write-guide  2 times: killed, then completed
      Commits on main, and the line that two tasks changed:
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
      'Add tasks',
      'Greet people',
      'Greet with an exclamation mark',
      'Say Hello instead of Hi',
      'Write a guide',
    ]);
    expect(git('rev-list', '--merges', '--count', 'main')).toBe('0\n');
    expect(git('status', '--porcelain')).toBe('');
    expect(git('branch', '--format=%(refname:short)')).toBe('main\n');
    expect(git('worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(1);
    for (const line of narration(text).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('kills a fan-out, resumes it, and lands the best copy', async () => {
    const { project, env } = demoFolder();
    const { code, stdout, stderr } = await project.run(['demo', 'fan-out'], { env });
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('');
    const [name = ''] = demosIn(project);
    const root = join(project.root, name);
    const cli = join(process.cwd(), 'dist/cli/main.js');
    const text = stderr.replaceAll(root, '<demo>').replaceAll(cli, '<cli>');
    for (const unit of ['fix:0', 'fix:1', 'fix:2', 'docs:0', 'docs:1'])
      expect(text).toMatch(new RegExp(`${unit} +agent (coder|writer) \\(scripted\\) started`));
    expect(text).toContain('copy 2 was selected by rank');
    expect(narration(text)).toMatchInlineSnapshot(`
      "Five parallel agents and one kill -9, in a new repository:
      <demo>

      Its test fails. Three copies of one agent try to fix it, each in its own
      worktree, while two others write documentation. The smallest change that passes
      the test lands, then the documentation. The agents are scripts, so you need no
      account.

      $ reprise run fix

      kill -9: four agents were done, and one was still working.

      $ reprise resume

      How often each step and copy ran:
        reproduce  2 times: the first attempt failed and was retried
        fix:0      once
        fix:1      once
        fix:2      2 times: killed, then completed
        docs:0     once
        docs:1     once
      Commits on main:
      <log>

      Look around:
        cd <demo>
        node <cli> history
      "
    `);
    const git = (...args: readonly string[]) =>
      execFileSync('git', args, { cwd: root, encoding: 'utf8', env: { PATH: process.env['PATH'] } });
    expect(git('log', '--format=%s', 'main').trim().split('\n')).toEqual([
      'docs:1: Written.',
      'docs:0: Written.',
      'fix:2: The greeting is fixed.',
      'Greet people',
    ]);
    expect(git('show', 'main:greet.mjs')).toBe("export const greet = name => 'Hello, ' + name + '!';\n");
    expect(git('status', '--porcelain')).toBe('');
    for (const line of narration(text).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it.each([
    ['workers', 'This will take a while.'],
    ['fan-out', 'agent writer (scripted) started'],
  ])('removes its folder and stops its processes when %s is interrupted', async (which, sign) => {
    const { project, env } = demoFolder();
    const demo = project.start(['demo', which], { env });
    await until(() => demo.stderr.includes(sign));
    const [name = ''] = demosIn(project);
    const mark = { DEMO_STAGE: join(project.root, name, '.git/demo') };
    demo.kill('SIGINT');
    const { code, stderr } = await demo.ended;
    expect(code, stderr).toBe(130);
    expect(stderr).toContain('error[CANCELLED]: the demo was interrupted; its folder has been removed');
    expect(demosIn(project)).toEqual([]);
    await until(() => markedWith(mark).length === 0);
  });

  it('removes its folder with --clean', async () => {
    const { project, env } = demoFolder();
    const { code, stderr } = await project.run(['demo', 'workers', '--clean'], { env });
    expect(code, stderr).toBe(0);
    expect(stderr).not.toContain('Look around');
    expect(demosIn(project)).toEqual([]);
  });

  it('lists the demos if the name is unknown', async () => {
    const { project, env } = demoFolder();
    const { code, stderr } = await project.run(['demo', 'fanout'], { env });
    expect(code).toBe(2);
    expect(stderr).toMatchInlineSnapshot(`
      "error[USAGE]: there is no demo "fanout"
        hint: available demos: reprise demo workers, reprise demo fan-out
      "
    `);
    expect(demosIn(project)).toEqual([]);
  });
});
