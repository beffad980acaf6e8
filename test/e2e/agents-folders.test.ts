import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { agentProject } from './agent-project.ts';
import { createProject, parseLines, until } from './run-inline.ts';

const hands = 'eval "$prompt"';
const run = (prompt: string, ...more: readonly string[]) => [
  'run',
  '--agent',
  'hands',
  '--prompt',
  prompt,
  ...more,
];

describe('an agent without a workflow', () => {
  it('works in a folder whose path has spaces, quotes and dollar signs, and from a subfolder', async () => {
    const name = `it's "a" $(b) folder`;
    const project = agentProject({ agents: { hands } });
    const inside = join(project.root, name);
    mkdirSync(join(inside, 'sub/deep'), { recursive: true });
    for (const entry of ['.git', 'a.txt', 'agents', 'reprise.yaml'])
      renameSync(join(project.root, entry), join(inside, entry));
    project.write({ [`${name}/sub/deep/c.txt`]: '' });
    for (const args of [
      ['add', '--all'],
      ['commit', '--quiet', '--message', 'Add a subfolder'],
    ])
      execFileSync('git', args, { cwd: inside });
    const options = { cwd: `${name}/sub/deep`, env: { MARKS: join(inside, '.git/marks') } };
    const outcome = await project.outcome(run('pwd -P; echo new > b.txt', '--concurrency', '2'), options);
    expect(outcome.code).toBe(0);
    const folder = `${inside}/.reprise/workspaces/hands/${outcome.run}/work/worker_1`;
    expect(outcome.output).toMatchObject({ work: { worker_results: [{}, { output: { text: folder } }] } });
    expect((await project.cli(['diff', outcome.run, 'work:0', '--stat'], options)).stdout).toContain('b.txt');
    expect((await project.cli(['logs', outcome.run, 'work:1'], options)).stdout).toBe(`${folder}\n`);
    project.write({ [`${name}/b.txt`]: 'mine\n' });
    const refused = await project.cli(['land', outcome.run, 'work:0'], options);
    expect(refused.code).toBe(6);
    // The suggested command works in a shell.
    const [, stash = ''] = refused.stderr.match(/land again: (git .*)\n/) ?? [];
    execFileSync('sh', ['-c', stash]);
    expect((await project.cli(['land', outcome.run, 'work:0'], options)).code).toBe(0);
    expect(project.read(`${name}/b.txt`)).toBe('new\n');
    expect((await project.cli(['gc'], options)).stdout).toContain('removed');
    expect(existsSync(folder)).toBe(false);
  });

  it('gets copies of the ignored files that .worktreeinclude names', async () => {
    const project = agentProject({
      agents: { hands },
      files: { '.gitignore': '.env\nkeys/\nbig*\n', '.worktreeinclude': '.env\nkeys/**\n' },
    });
    project.write({ '.env': 'K=1\n', 'keys/a': 'a\n', big1: 'b\n' });
    const before = project.checkout();
    const { code, output, run: id } = await project.outcome(run('cat .env keys/a; ls big1; echo K=2 > .env'));
    expect({ code, output }).toMatchObject({ code: 0, output: { work: { text: 'K=1\na' } } });
    expect(project.read('.env')).toBe('K=1\n');
    expect(project.checkout()).toBe(before);
    expect(project.git('ls-tree', '-r', '--name-only', `reprise/hands/${id}/work`)).toBe(
      project.git('ls-tree', '-r', '--name-only', 'main'),
    );
  });

  it('is refused outside a repository and in one without commits', async () => {
    const files = { 'reprise.yaml': 'agents:\n  hands: { kind: command, command: [cat] }\n' };
    const nowhere = await createProject({ files }).run(run('x'));
    expect(nowhere.code).toBe(1);
    expect(nowhere.stderr).toMatch(/error\[NOT_A_REPOSITORY\].*\n.*git init/);
    const empty = await createProject({ files, git: true }).run(run('x'));
    expect(empty.code).toBe(1);
    expect(empty.stderr).toMatch(/has no commit.*\n.*git commit/);
  });

  it('works in the project folder with `workspace: none`, even outside a repository', async () => {
    const project = createProject({
      files: {
        'reprise.yaml': 'agents:\n  hands: { kind: command, command: [cat] }\n',
        'w.yaml': 'steps:\n  - { id: s, agent: hands, prompt: "hi", workspace: none }\n',
      },
    });
    expect(await project.run(['run', 'w.yaml'])).toMatchObject({ code: 0, stdout: '{"s":{"text":"hi"}}\n' });
  });

  it('reports all mistakes in reprise.yaml before anything runs', async () => {
    const project = agentProject({ agents: { hands } });
    project.write({
      'reprise.yaml': 'agents:\n  hands: { kind: comand }\n  b: { kind: command }\nworktree: 1\n',
    });
    const { code, stderr } = await project.cli(run('touch "$MARKS.ran"'));
    expect(code).toBe(2);
    expect(stderr).toContain('reprise.yaml:2:18');
    expect(stderr).toContain('did you mean `command`?');
    expect(stderr).toContain('`kind: command` needs `command`');
    expect(stderr).toContain('did you mean `worktrees`?');
    expect(project.has(`${stateOf(project.root)}/reprise.db`)).toBe(false);
    // Commands that only read still work.
    expect((await project.cli(['list'])).code).toBe(0);
  });
});

describe('the output of agents', () => {
  it('is followed by `logs --follow` until they end', async () => {
    const project = agentProject({ agents: { hands } });
    const script = 'echo first; until [ -e "$MARKS.go" ]; do sleep 0.02; done; echo last';
    const running = project.begin(run(script, '--concurrency', '2', '--json'));
    await until(() => running.stdout.split('session.started').length === 3);
    const watcher = project.begin(['logs', '--follow']);
    await until(() => watcher.stdout.split('| first').length === 3);
    project.tell('go', '');
    expect((await watcher.ended).stdout.split('\n').toSorted()).toEqual([
      '',
      'work:0 | first',
      'work:0 | last',
      'work:1 | first',
      'work:1 | last',
    ]);
    expect((await running.ended).code).toBe(0);
  });

  it('is plain text in a pipe and with NO_COLOR, and JSON on request', async () => {
    const project = agentProject({ agents: { hands } });
    const { stderr } = await project.cli(run('echo new > b.txt'), {
      env: { NO_COLOR: '1', FORCE_COLOR: '' },
    });
    expect(stderr).not.toContain('\u001B');
    for (const args of [['list'], ['show'], ['logs'], ['history'], ['doctor'], ['gc', '--dry-run']])
      expect((await project.cli(args)).stdout, args.join(' ')).not.toContain('\u001B');
    const [listed] = parseLines((await project.cli(['list', '--json'])).stdout);
    expect(Object.keys(listed ?? {})).toEqual(['id', 'workflow', 'status', 'started_at', 'ended_at', 'cost']);
  });

  it('does not stop the run when the reader closes the pipe', async () => {
    const project = agentProject({ agents: { hands } });
    const cli = `'${process.execPath}' '${process.cwd()}/dist/cli/main.js'`;
    const closed = join(project.root, '.git', 'closed');
    const prompt = `until [ -e "${closed}" ]; do sleep 0.02; done; echo new > b.txt`;
    const reader = `{ head -1; exec 0<&-; touch "${closed}"; }`;
    const command = `${cli} run --agent hands --prompt '${prompt}' 2>&1 | ${reader}`;
    expect(execFileSync('sh', ['-c', command], { cwd: project.root, encoding: 'utf8' })).toContain(
      'started: 1 step',
    );
    const [listed] = parseLines((await project.cli(['list', '--json'])).stdout);
    expect(listed).toMatchObject({ status: 'completed' });
  });

  it('fits into a terminal with 40 columns', async () => {
    const project = agentProject({ agents: { hands } });
    const drawnFile = join(project.root, '.git', 'drawn');
    // The agents end once the view shows the third copy.
    const prompt = `echo this line is much longer than forty columns; until grep -q work:2 "${drawnFile}"; do sleep 0.02; done`;
    const program = `stty cols 40 rows 20; exec '${process.execPath}' '${process.cwd()}/dist/cli/main.js' run --agent hands --prompt '${prompt}' --concurrency 3`;
    execFileSync('sh', ['-c', 'exec script -qec "$1" /dev/null > "$2"', 'sh', program, drawnFile], {
      cwd: project.root,
      input: '',
      env: { ...process.env, NO_COLOR: '1', TERM: 'xterm', CI: undefined, MARKS: '/dev/null' },
    });
    const drawn = readFileSync(drawnFile, 'utf8');
    // A wrapped line would break the live view, which redraws in place.
    const [live = ''] = drawn.split('{\r\n');
    const lines = stripVTControlCharacters(live).split(/\r?\n|\r/);
    expect(lines.some(line => line.includes('work'))).toBe(true);
    expect(lines.filter(line => line.length > 40)).toEqual([]);
  });
});
