import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { createProject, defineModule, parseLines, runInline, type TestProject, until } from './run-inline.ts';

const files = {
  '.reprise/workflows/diamond.yaml': `
steps:
  - { id: a, run: "true" }
  - { id: b, needs: [a], run: "true" }
  - { id: c, needs: [a], run: "true", optional: true }
  - { id: d, needs: [b, c], if: always(), run: "true" }
`,
  '.reprise/workflows/failing.yaml':
    'steps:\n  - { id: a, run: "true" }\n  - { id: b, needs: [a], run: "exit 9" }\n',
  '.reprise/workflows/gate.yaml': 'steps:\n  - { id: ok, approve: "Continue?" }\n',
};

const output = async (project: TestProject, ...args: string[]) => {
  const { code, stdout, stderr } = await project.run(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return project.stable(stdout);
};

describe('reprise list', () => {
  it('shows the runs of the project, newest first', async () => {
    const project = createProject({ files });
    expect(await project.run(['list'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'no runs yet; start a workflow: reprise run <workflow>\n',
    });
    expect(await project.run(['list', '--json'])).toMatchObject({ code: 0, stdout: '', stderr: '' });
    for (const name of ['diamond', 'failing', 'gate']) await project.run(['run', name]);
    expect(await output(project, 'list')).toMatchInlineSnapshot(`
      "◔  <run>  gate  waiting  <ago>
      ✗  <run>  failing  failed  <ago>  took <took>
      ✓  <run>  diamond  completed  <ago>  took <took>
      "
    `);
    const rows = parseLines<Record<string, unknown>>((await project.run(['list', '--json'])).stdout);
    expect(rows.map(({ workflow, status }) => [workflow, status])).toEqual([
      ['gate', 'waiting'],
      ['failing', 'failed'],
      ['diamond', 'completed'],
    ]);
    expect(Object.keys(rows[0] ?? {})).toEqual([
      'id',
      'workflow',
      'status',
      'started_at',
      'ended_at',
      'cost',
    ]);
    expect(parseLines((await project.run(['list', '--json', '--limit', '1'])).stdout)).toMatchObject([
      { workflow: 'gate' },
    ]);
    expect(parseLines((await project.run(['ls', '--json', '--workflow', 'failing'])).stdout)).toHaveLength(1);
  });

  it('names the workflows that have runs if the given one has none', async () => {
    const project = createProject({ files });
    for (const name of ['diamond', 'gate']) await project.run(['run', name]);
    expect(await project.run(['list', '--workflow', 'none'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'no runs of workflow none; the project has runs of gate, diamond\n',
    });
  });

  it('exits with 0 if the reader of the pipe has exited', async () => {
    const project = createProject({ files });
    await project.run(['run', 'diamond']);
    const cli = `"${process.execPath}" "${resolve('dist/cli/main.js')}"`;
    // The reader closes the pipe before anything is written.
    const script = `${cli} list --json | exec 0<&-; exit "\${PIPESTATUS[0]}"`;
    const { status, stderr } = spawnSync('bash', ['-c', script], { cwd: project.root, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});

describe('reprise show', () => {
  it('shows how a run ended and what to type next, even if its definition was deleted', async () => {
    const project = createProject({ files });
    await project.run(['run', 'failing']);
    rmSync(join(project.root, '.reprise/workflows/failing.yaml'));
    expect(await output(project, 'show')).toMatchInlineSnapshot(`
      "failing (.reprise/workflows/failing.yaml), run <run>: failed
      ✗ failing failed after <took>

        ✓  a  <took>
        ✗  b  <took>  exited with code 9
        2 steps, peak concurrency 1, <took> wall, <took> total

      b: exited with code 9 [EXIT_NONZERO]
        hint: The whole output is in <root>/.reprise/state/logs/<run>/b.1.log

      next: reprise resume <run>  after fixing it; finished steps are kept
            reprise history <run>  show all events
      "
    `);
    const [shown] = parseLines((await project.run(['show', '--json'])).stdout);
    expect(shown).toMatchObject({
      workflow: 'failing',
      status: 'failed',
      owner: null,
      step: 'b',
      error: { code: 'EXIT_NONZERO' },
      steps: [
        { path: 'a', status: 'completed', attempts: 1 },
        { path: 'b', status: 'failed', error: { code: 'EXIT_NONZERO' } },
      ],
      next: [expect.stringMatching(/^reprise resume \w+$/)],
    });
  });

  it('shows no error for a step that completed after a retry', async () => {
    const flaky =
      'steps:\n  - { id: a, run: "if mkdir once; then exit 1; fi", retry: { attempts: 2, backoff: { initial: 1ms } } }\n';
    const { project } = await runInline({ files: { 'flaky.yaml': flaky }, args: ['run', 'flaky.yaml'] });
    const [shown] = parseLines<{ steps: object[] }>((await project.run(['show', '--json'])).stdout);
    expect(shown?.steps).toMatchObject([{ status: 'completed', attempts: 2 }]);
    expect(shown?.steps[0]).not.toHaveProperty('error');
  });

  it('shows what a run is waiting for', async () => {
    const project = createProject({ files });
    await project.run(['run', 'gate']);
    expect(await output(project, 'show')).toMatchInlineSnapshot(`
      "gate (.reprise/workflows/gate.yaml), run <run>: waiting
      no process is running it
      … gate is waiting for you

        ◔  ok  waiting for approval: Continue?
        1 step, <took>

      next: reprise approve <run> ok  answer: approve or reject
            reprise resume <run>  then continue
      "
    `);
    expect(parseLines((await project.run(['show', '--json'])).stdout)).toMatchObject([
      {
        status: 'waiting',
        waiting: [{ step: 'ok', on: 'approval' }],
        next: [expect.stringMatching(/^reprise approve \w+ ok$/)],
      },
    ]);
  });

  it('shows the process of a run', async () => {
    const project = createProject({
      files: { 'slow.yaml': 'steps:\n  - { id: slow, run: "touch started; exec sleep 1000" }\n' },
    });
    const run = project.start(['run', 'slow.yaml']);
    await until(() => project.has('started'));
    expect(await output(project, 'show')).toMatchInlineSnapshot(`
      "slow (slow.yaml), run <run>: running
      process <pid> on <host> is running it
      ● slow is running (last event after <took>)

        ●  slow
        1 step, peak concurrency 1, <took> wall, <took> total

      next: reprise show <run>  check again
            reprise cancel <run>  stop it
      "
    `);
    expect(parseLines((await project.run(['show', '--json'])).stdout)).toMatchObject([
      { status: 'running', owner: { state: 'held', pid: run.pid } },
    ]);
    run.kill('SIGINT');
    await run.ended;
  });
});

describe('reprise history', () => {
  it('orders events by step however the steps overlapped, and by time with --raw', async () => {
    const project = createProject({ files });
    await project.run(['run', 'diamond']);
    expect(await output(project, 'history')).toMatchInlineSnapshot(`
      " 1  <time>  run.started  diamond
       2  <time>  step.started  a
       3  <time>  step.completed  a  {}
       4  <time>  step.started  b
       5  <time>  step.completed  b  {}
       6  <time>  step.started  c
       7  <time>  step.completed  c  {}
       8  <time>  step.started  d
       9  <time>  step.completed  d  {}
      10  <time>  run.completed  {"d":{}}
      "
    `);
    const canonical = parseLines<{ seq: number; type: string; step?: string }>(
      (await project.run(['history', '--json'])).stdout,
    );
    const raw = parseLines<{ seq: number }>((await project.run(['history', '--raw', '--json'])).stdout);
    expect(canonical.map(({ seq }) => seq)).toEqual(raw.map(({ seq }) => seq));
    expect(canonical.flatMap(({ type, step }) => (type === 'step.started' ? [step] : []))).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
  });

  it('prints equal digests for equivalent runs', async () => {
    const project = createProject({ files });
    const digests = async () => {
      await project.run(['run', 'diamond']);
      return (await project.run(['history', '--digest'])).stdout;
    };
    const first = await digests();
    expect(first).toMatch(/^outcome [0-9a-f]{64}\nhistory [0-9a-f]{64}\n$/);
    expect(await digests()).toBe(first);
    const [json] = parseLines<{ outcome: string; history: string }>(
      (await project.run(['history', '--digest', '--json'])).stdout,
    );
    expect(`outcome ${json?.outcome}\nhistory ${json?.history}\n`).toBe(first);
  });
});

describe('reprise replay', () => {
  /** Path, mtime and content hash of every file, except SQLite's shared memory, which readers lock. */
  const filesIn = (folder: string): readonly string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && !entry.name.endsWith('-shm'))
      .map(entry => join(entry.parentPath, entry.name))
      .sort()
      .map(
        file =>
          `${file} ${statSync(file).mtimeMs} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`,
      );

  it('prints the recorded output, runs nothing and writes nothing', async () => {
    const counting =
      'steps:\n  - { id: count, run: "echo ran >> marks; echo n=1 > /dev/null; echo \\"{\\\\\\"n\\\\\\": 1}\\" > $REPRISE_OUTPUT" }\n';
    const project = createProject({ files: { 'count.yaml': counting } });
    const ran = await project.run(['run', 'count.yaml', '--json']);
    expect(ran.code, ran.stdout).toBe(0);
    const before = filesIn(project.root);
    const replayed = await project.run(['replay']);
    expect(replayed).toMatchObject({
      code: 0,
      stdout: '{"count":{"n":1}}\n',
      stderr: 'replayed 4 events; nothing was run or written\n',
    });
    expect((await project.run(['replay', '--json'])).stdout).toBe(ran.stdout);
    expect(filesIn(project.root)).toEqual(before);
    expect(project.read('marks')).toBe('ran\n');
  });

  it('exits as the recorded run did', async () => {
    const project = createProject({ files });
    await project.run(['run', 'failing']);
    const failed = await project.run(['replay']);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(project.stable(failed.stderr)).toMatchInlineSnapshot(`
      "replayed 6 events; nothing was run or written
      the run ended as failed: exited with code 9; see what happened: reprise show <run>
      "
    `);
    await project.run(['run', 'gate']);
    expect(await project.run(['replay'])).toMatchObject({ code: 3 });
  });

  it('exits with 5 if the definition has changed', async () => {
    const project = createProject({ files });
    await project.run(['run', 'diamond']);
    project.write({
      '.reprise/workflows/diamond.yaml': files['.reprise/workflows/diamond.yaml'].replace(
        'id: b, needs: [a], run: "true"',
        'id: b, needs: [a], run: "false"',
      ),
    });
    const { code, stderr } = await project.run(['replay']);
    expect(code).toBe(5);
    expect(project.stable(stderr)).toMatchInlineSnapshot(`
      "error[HISTORY_DIVERGED]: run <run> does not match the definition: b changed since it ran
        hint: to rerun the changed steps: reprise resume <run> --rerun-changed
      "
    `);
  });
});

describe('reprise graph', () => {
  it('prints a workflow as text, Mermaid and JSON, with the statuses of a run', async () => {
    const project = createProject({ files });
    expect(await output(project, 'graph', 'diamond')).toMatchInlineSnapshot(`
      "diamond: 4 steps
       1 ─── a  shell
       2 ─┬─ b  shell  ← a
          └─ c  shell · optional  ← a
       3 ─── d  shell · conditional  ⇇ maybe b, maybe c
      "
    `);
    expect(await output(project, 'graph', 'diamond', '--mermaid')).toMatchInlineSnapshot(`
      "flowchart TD
        s0["a"]
        s1["b"]
        s2["c<br/>optional"]
        s3["d<br/>conditional"]
        s0 --> s1
        s0 --> s2
        s1 -.-> s3
        s2 -.-> s3
      "
    `);
    await project.run(['run', 'failing', '--json']);
    const [run] = parseLines<{ id: string }>((await project.run(['list', '--json'])).stdout);
    expect(await output(project, 'graph', 'failing', '--run', run?.id ?? '')).toMatchInlineSnapshot(`
      "failing: 2 steps
       1 ─── ✓ a  shell
       2 ─── ✗ b  shell  ← a
      "
    `);
    const [json] = parseLines(
      (await project.run(['graph', 'failing', '--json', '--run', run?.id ?? ''])).stdout,
    );
    expect(json).toEqual({
      workflow: 'failing',
      steps: [
        { path: 'a', kind: 'run', needs: [], optional: false, status: 'completed' },
        {
          path: 'b',
          kind: 'run',
          needs: [{ path: 'a', tolerant: false }],
          optional: false,
          status: 'failed',
        },
      ],
    });
  });
});

describe('reprise validate', () => {
  it('checks every file of the project and lists all problems', async () => {
    const project = createProject({ files });
    expect(await output(project, 'validate')).toMatchInlineSnapshot(`
      "ok .reprise/workflows/diamond.yaml (diamond)
      ok .reprise/workflows/failing.yaml (failing)
      ok .reprise/workflows/gate.yaml (gate)
      "
    `);
    project.write({
      '.reprise/workflows/bad.yaml': 'steps:\n  - { id: a }\n  - { id: a, run: "true" }\n',
      'reprise.yaml': 'runtme: {}\n',
    });
    const { code, stdout, stderr } = await project.run(['validate']);
    expect(code).toBe(2);
    expect(stdout).toContain('ok .reprise/workflows/diamond.yaml (diamond)');
    expect(stderr).toMatchInlineSnapshot(`
      "error[DEFINITION_INVALID]: step \`a\` does nothing
        at .reprise/workflows/bad.yaml:2:5
         2 |   - { id: a }
           |     ^^^^^^^^^
        hint: add one of \`run\` (a shell script), \`agent\` (a task for an agent), \`uses\` (another workflow), \`approve\` (a question for a person), \`land\` (lands work on a branch)

      error[DEFINITION_INVALID]: duplicate step id \`a\`
        at .reprise/workflows/bad.yaml:3:11
         3 |   - { id: a, run: "true" }
           |           ^
        hint: first defined on line 2

      2 problems
      error[CONFIG_INVALID]: reprise.yaml:1:1: unknown key \`runtme\`
         1 | runtme: {}
           | ^^^^^^
        hint: did you mean \`runtime\`?
      "
    `);
    const lines = parseLines(
      (await project.run(['validate', '--json', 'bad', 'diamond', 'reprise.yaml'])).stdout,
    );
    expect(lines).toMatchObject([
      { file: 'bad', ok: false, problems: [{ line: 2 }, { line: 3 }] },
      { file: 'diamond', ok: true, workflow: 'diamond', problems: [] },
      { file: 'reprise.yaml', ok: false, problems: [{ code: 'CONFIG_INVALID', line: 1 }] },
    ]);
  });
});

describe('reprise validate in a project with modules', () => {
  const module = (name: string) => `
import { writeFileSync } from 'node:fs';
import { step, workflow } from '${defineModule}';
writeFileSync('${name}.ran', '');
export default workflow('${name}', { steps: [step('a', { run: () => 1 })] });
`;
  const modules = {
    '.reprise/workflows/order.mjs': module('order'),
    '.reprise/workflows/pay.ts': module('pay'),
    '.reprise/workflows/ok.yaml': 'steps: [{ id: a, run: "true" }]',
  };
  const unchecked =
    '2 TypeScript workflows not checked, because that runs the code; to check, name their files: reprise validate .reprise/workflows/order.mjs\n';

  it('runs none of their code and says how many it did not check', async () => {
    const project = createProject({ files: modules });
    expect(await project.run(['validate'])).toEqual({
      code: 0,
      stdout: 'ok .reprise/workflows/ok.yaml (ok)\n',
      stderr: unchecked,
    });
    expect(await project.run(['validate', '--json'])).toEqual({
      code: 0,
      stdout: '{"file":".reprise/workflows/ok.yaml","ok":true,"workflow":"ok","problems":[]}\n',
      stderr: unchecked,
    });
    expect([project.has('order.ran'), project.has('pay.ran')]).toEqual([false, false]);
  });

  it('checks the ones that are named', async () => {
    const project = createProject({ files: modules });
    expect(await project.run(['validate', '.reprise/workflows/order.mjs'])).toEqual({
      code: 0,
      stdout: 'ok .reprise/workflows/order.mjs (order)\n',
      stderr: '',
    });
    expect(project.has('order.ran')).toBe(true);
  });
});

describe('reprise doctor', () => {
  it('checks what runs depend on', async () => {
    const { code, stdout, project } = await runInline({ files, git: true, args: ['doctor'] });
    expect(code, stdout).toBe(0);
    expect(stdout).toMatch(/^ok {3}node: v\d+/m);
    expect(stdout).toMatch(/^ok {3}store: .*write-ahead log, every commit synced/m);
    expect(project.has(stateOf(project.root))).toBe(false);
    const findings = parseLines<{ name: string; level: string }>(
      (await project.run(['doctor', '--json'])).stdout,
    );
    expect(findings.map(({ name }) => name)).toEqual([
      'node',
      'git',
      'bash',
      'store',
      'ignored',
      'config',
      'disk',
      'agent claude',
      'agent codex',
    ]);
  });

  it('fails and says what to do if the store cannot be opened', async () => {
    const { code, stdout } = await runInline({
      files: { ...files, 'not-a-folder': '' },
      args: ['doctor', '--state-dir', 'not-a-folder/state'],
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^fail store: .*\n {5}\S/m);
  });
});
