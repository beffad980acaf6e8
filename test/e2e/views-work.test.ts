import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { createProject, type Files, parseLines, type TestProject, until } from './run-inline.ts';

const git = (project: TestProject, ...args: string[]): string =>
  execFileSync('git', args, { cwd: project.root, encoding: 'utf8' });

/** Repository whose first commit has the given files. */
function repository(files: Files): TestProject {
  const project = createProject({ files: { 'a.txt': 'one\n', ...files }, git: true });
  git(project, 'symbolic-ref', 'HEAD', 'refs/heads/main');
  git(project, 'config', 'user.name', 'ana');
  git(project, 'config', 'user.email', 'ana@example.com');
  git(project, 'add', '--all');
  git(project, 'commit', '--quiet', '--message', 'Initial commit');
  return project;
}

const config = `
agents:
  coder:
    kind: scripted
    script:
      - say: "Writing \\e[31mthe file\\e[0m"
      - write: { path: b.txt, content: "new\\n" }
      - result: { text: done }
  blocked:
    kind: scripted
    script:
      - ask: { tool: Bash, input: { command: "make all" } }
`;

const files = {
  'reprise.yaml': config,
  '.reprise/workflows/fix.yaml': `
steps:
  - id: fix
    agent: coder
    prompt: "Fix the typo"
    concurrency: 2
    select: { rank: 'echo "\${REPRISE_WORKER:-0}"' }
  - { id: note, run: "echo noted", workspace: none }
`,
  '.reprise/workflows/pair.yaml': `
steps:
  - { id: fix, agent: coder, prompt: "Fix the typo", concurrency: 2 }
`,
};

const started = async (project: TestProject, ...args: string[]) => {
  const { code, stderr, stdout } = await project.run(['run', ...args]);
  const [newest] = parseLines<{ id: string; cost: unknown }>((await project.run(['list', '--json'])).stdout);
  return { code, stderr, stdout, run: newest?.id ?? '', cost: newest?.cost };
};

describe('the work of agents', () => {
  it('is shown by logs and diff, landed by land and removed by gc', async () => {
    const project = repository(files);
    const { code, stderr, run, cost } = await started(project, 'fix');
    expect({ code, cost }).toEqual({ code: 0, cost: 0 });
    const winner = /copy (\d) was selected/.exec(stderr)?.[1];
    expect(stderr).toContain(`next: reprise diff ${run} fix:${winner}`);

    const logs = await project.run(['logs', run, 'fix:0']);
    expect(logs.stdout).toContain('Writing the file\n');
    expect(logs.stdout).not.toContain('\u001B');
    const lines = parseLines((await project.run(['logs', run, '--json'])).stdout);
    expect(lines).toContainEqual({ step: 'note', worker: null, attempt: 1, line: 'noted' });
    expect(lines).toContainEqual({
      step: 'fix',
      worker: 1,
      attempt: 1,
      line: 'Writing \u001B[31mthe file\u001B[0m',
    });

    const diff = await project.run(['diff', run, 'fix']);
    expect(diff).toMatchObject({ code: 0, stderr: '' });
    expect(diff.stdout).toContain('+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n');
    expect((await project.run(['diff', run, 'fix:0', '--stat'])).stdout).toContain('1 file changed');

    const shown = await project.run(['show', run, '--json']);
    expect(parseLines(shown.stdout)[0]).toMatchObject({
      steps: [
        { path: 'fix', workers: 2, selected: Number(winner) },
        { path: 'fix:0', session: { agent: 'coder', kind: 'scripted' }, branch: expect.any(String) },
        { path: 'fix:1' },
        { path: 'note' },
      ],
    });

    const verified = ['land', run, '--verify', 'test -f b.txt && test ! -f c.txt'];
    const landed = await project.run([...verified, '--json']);
    expect({ code: landed.code, ...parseLines(landed.stdout)[0] }).toMatchObject({
      code: 0,
      run,
      step: `fix:${winner}`,
      onto: 'main',
      outcome: 'landed',
    });
    expect(project.read('b.txt')).toBe('new\n');
    const again = await project.run(['land', run]);
    expect(again).toMatchObject({ code: 0, stderr: `nothing left to land from run ${run}\n` });

    const dry = await project.run(['gc', '--dry-run']);
    expect(dry.stdout).toContain(`would remove .reprise/workspaces/fix/${run}/fix/worker_0`);
    expect(existsSync(join(project.root, '.reprise/workspaces/fix', run, 'fix/worker_0'))).toBe(true);
    const removed = await project.run(['gc', '--json']);
    const otherBranch = `reprise/fix/${run}/fix/worker_${1 - Number(winner)}`;
    expect(parseLines(removed.stdout)[0]).toMatchObject({
      dry_run: false,
      freed_bytes: expect.any(Number),
    });
    expect(existsSync(join(project.root, '.reprise/workspaces/fix', run, 'fix/worker_0'))).toBe(false);
    // Both copies wrote the same content, so the other copy's commit differs from the landed one only by its id.
    expect(git(project, 'branch', '--list', otherBranch)).toContain(otherBranch);
    expect(await project.run(['gc'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('nothing to remove'),
    });
    expect((await project.run(['diff', run, 'fix'])).stdout).toContain('+new');
  });

  it('needs the number of a copy if none was selected', async () => {
    const project = repository(files);
    const { run } = await started(project, 'pair');
    expect(await project.run(['diff', run, 'fix'])).toMatchObject({
      code: 2,
      stderr: `error[USAGE]: fix has 2 copies, each with its own work: fix:0, fix:1\n  hint: name one: reprise diff ${run} fix:0\n`,
    });
    expect(await project.run(['land', run])).toMatchObject({
      code: 2,
      stderr: `error[USAGE]: several steps of run ${run} have work that has not landed: fix:0, fix:1\n  hint: name one: reprise land ${run} fix:0\n`,
    });
    expect((await project.run(['logs', run, 'fxi'])).stderr).toContain('did you mean fix?');
    expect((await project.run(['diff', run, 'fix:9'])).stderr).toContain(
      'the copies of fix are fix:0, fix:1',
    );
  });

  it('is not landed if it fails the verification or conflicts, and nothing changes', async () => {
    const project = repository(files);
    const { run } = await started(project, 'pair');
    const head = git(project, 'rev-parse', 'HEAD');
    const refused = await project.run(['land', run, 'fix:0', '--verify', 'echo no good; false']);
    expect(refused.code).toBe(6);
    expect(refused.stderr).toContain('no good');
    expect(refused.stderr).toContain(`retry: reprise land ${run} fix:0 --verify 'echo no good; false'`);
    expect((await project.run(['land', run, 'fix:0', '--onto', 'nowhere'])).code).toBe(6);
    project.write({ 'b.txt': 'mine\n' });
    git(project, 'add', 'b.txt');
    git(project, 'commit', '--quiet', '--message', 'mine');
    const conflict = await project.run(['land', run, 'fix:0', '--json']);
    expect({ code: conflict.code, ...parseLines(conflict.stdout)[0] }).toMatchObject({
      code: 6,
      outcome: 'conflict',
      files: ['b.txt'],
    });
    expect(git(project, 'rev-parse', 'HEAD~1')).toBe(head);
    expect(project.read('b.txt')).toBe('mine\n');
  });

  it('is shown by diff before it is saved', async () => {
    const script =
      'echo half > half.txt; echo more >> a.txt; touch "$GO.ready"; until [ -f "$GO" ]; do sleep 0.02; done';
    const project = repository({
      '.reprise/workflows/slow.yaml': `steps:\n  - { id: slow, workspace: worktree, run: '${script}' }\n`,
    });
    const go = join(project.root, '.reprise', 'go');
    const running = project.start(['run', 'slow'], { env: { GO: go } });
    await until(() => existsSync(`${go}.ready`));
    const [{ id } = { id: '' }] = parseLines<{ id: string }>((await project.run(['list', '--json'])).stdout);
    const { stdout } = await project.run(['diff', id, 'slow']);
    expect(stdout).toContain('+++ b/half.txt');
    expect(stdout).toContain('+more');
    expect((await project.run(['gc'])).stdout).toContain(`run ${id} has not ended`);
    writeFileSync(go, '');
    expect((await running.ended).code).toBe(0);
  });
});

describe('reprise logs --follow', () => {
  it('prints lines until the run ends, and does not stop the run when it is interrupted', async () => {
    const script = 'echo first; until [ -f "$GO" ]; do sleep 0.02; done; echo last';
    const project = createProject({
      files: { '.reprise/workflows/slow.yaml': `steps:\n  - { id: slow, run: '${script}' }\n` },
    });
    const go = join(project.root, 'go');
    const running = project.start(['run', 'slow'], { env: { GO: go } });
    await until(() => existsSync(join(project.root, stateOf(project.root), 'reprise.db')));
    await until(() => /slow +started/.test(running.stderr));
    const toTheEnd = project.start(['logs', '-f']);
    const interrupted = project.start(['logs', '--follow']);
    await until(() => interrupted.stdout.includes('first') && toTheEnd.stdout.includes('first'));
    interrupted.kill('SIGINT');
    expect((await interrupted.ended).stdout).toBe('slow | first\n');
    writeFileSync(go, '');
    expect(await toTheEnd.ended).toEqual({ code: 0, stdout: 'slow | first\nslow | last\n', stderr: '' });
    expect((await running.ended).code).toBe(0);
  });
});

describe('reprise run --agent', () => {
  it('runs copies with the literal prompt, and can be resumed', async () => {
    const project = repository({
      'reprise.yaml': `agents:\n  echo: { kind: command, command: ["sh", "agent.sh"] }\n`,
      'agent.sh': 'cat > prompt.txt; test -f "$OK" || exit 3\n',
    });
    const ok = join(project.root, '.reprise', 'ok');
    const prompt = 'Keep ${{ inputs.x }}, "$HOME" and `this`.\n';
    const args = [
      'run',
      '--agent',
      'echo',
      '--prompt',
      '-',
      '--concurrency',
      '2',
      '--check',
      'test -s prompt.txt',
    ];
    const failed = await project.run(args, { stdin: prompt, env: { OK: ok } });
    expect(failed.code).toBe(1);
    writeFileSync(ok, '');
    const resumed = await project.run(['resume'], { env: { OK: ok } });
    expect(resumed.code).toBe(0);
    const [run] = parseLines<{ id: string; workflow: string }>(
      (await project.run(['list', '--json'])).stdout,
    );
    expect(run?.workflow).toBe('echo');
    const diff = await project.run(['diff', run?.id ?? '', 'work:1']);
    expect(diff.stdout).toContain('+Keep ${{ inputs.x }}, "$HOME" and `this`.');
  });

  it.each([
    [['run', '--agent', 'cluade', '--prompt', 'x'], 'there is no agent cluade', 'did you mean claude?'],
    [['run', '--agent', 'claude'], '--agent needs either --prompt or --prompt-file', 'for example'],
    [['run', '--agent', 'claude', '--prompt', ' '], 'the prompt is empty', ''],
    [
      ['run', '--agent', 'claude', '--prompt-file', 'none.md'],
      '--prompt-file none.md cannot be read',
      'the path',
    ],
    [
      ['run', 'fix', '--agent', 'claude', '--prompt', 'x'],
      'a workflow and --agent cannot be combined',
      'hint',
    ],
    [['run', 'fix', '--check', 'x'], '--check requires --agent', ''],
    [['run'], 'nothing to run: no workflow and no agent given', 'reprise run --agent claude'],
  ])('refuses %j: %s', async (args, message, hint) => {
    const { code, stderr } = await createProject().run(args);
    expect(code).toBe(2);
    expect(stderr).toContain(`error[USAGE]: ${message}`);
    expect(stderr).toContain(hint);
  });
});

describe('the agents of a project', () => {
  it('are checked before anything runs', async () => {
    const project = repository({
      ...files,
      '.reprise/agents/writer.md': '---\nkind: claude\n---\nWrite well.\n',
      '.reprise/workflows/wrong.yaml': `
steps:
  - { id: a, agent: coder, prompt: x }
  - { id: b, agent: witer, prompt: x }
  - { id: c, agent: claude, prompt: x }
`,
    });
    for (const command of ['validate', 'run']) {
      const { code, stderr } = await project.run([command, 'wrong']);
      expect(code).toBe(2);
      expect(stderr).toContain('unknown agent `witer` in step `b`');
      expect(stderr).toContain('wrong.yaml:4:');
      expect(stderr).toContain('did you mean `writer`?');
    }
    expect(project.has(`${stateOf(project.root)}/reprise.db`)).toBe(false);
    rmSync(join(project.root, '.reprise/workflows/wrong.yaml'));
    expect((await project.run(['validate'])).code).toBe(0);
  });

  it('exit with 3 after a denied command, and show the line that allows it', async () => {
    const project = repository({
      ...files,
      '.reprise/workflows/blocked.yaml': 'steps:\n  - { id: a, agent: blocked, prompt: x }\n',
    });
    const { code, stderr } = await project.run(['run', 'blocked']);
    expect(code).toBe(3);
    expect(stderr).toContain('to allow it, add to the agent blocked: allow: ["Bash(make all)"]');
  });

  it('are checked by doctor', async () => {
    const project = repository(files);
    const rows = parseLines<{ name: string; level: string; next?: string }>(
      (await project.run(['doctor', '--json'])).stdout,
    );
    expect(rows.filter(({ name }) => name.startsWith('agent '))).toMatchObject([
      { name: 'agent claude' },
      { name: 'agent codex' },
      { name: 'agent coder', level: 'ok' },
      { name: 'agent blocked', level: 'ok' },
    ]);
    project.write({ 'reprise.yaml': 'agents:\n  own: { kind: command, command: ["no-such-program"] }\n' });
    const { code, stdout } = await project.run(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toContain(
      'fail agent own: command, `no-such-program` was not found on PATH\n     install',
    );
  });
});
