import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stateOf } from '../support/state.ts';
import { type AgentProject, agentProject } from './agent-project.ts';
import { parseLines, runInline, until } from './run-inline.ts';

const config = 'workers: { agent: implement }';

/** Finishes its task once `$MARKS.go` exists. */
const patient = `
echo "$REPRISE_TASK" >> "$MARKS"
until [ -e "$MARKS.go" ]; do sleep 0.05; done
echo done > "$REPRISE_TASK.txt"
echo "<next>land</next>"`;

const files = {
  'issues/fix-readme.md': '---\npriority: P1\n---\n# Fix the readme\n\nThe install command is outdated.\n',
  'issues/日本語.md': '---\nstate: draft\n---\n# 日本語\n',
};

const project = (more: Readonly<Record<string, string>> = {}) =>
  agentProject({ agents: { implement: patient }, files: { ...files, ...more }, config });

interface Status {
  readonly workers: readonly Record<string, unknown>[];
  readonly tasks: readonly { readonly id: string; readonly standing: string }[];
  readonly locks: readonly Record<string, unknown>[];
  readonly abandoned: readonly Record<string, unknown>[];
  readonly parked: readonly Record<string, unknown>[];
  readonly branch: string;
  readonly main: string;
}

const statusOf = async (at: AgentProject): Promise<Status> =>
  JSON.parse((await at.run(['status', '--json'])).stdout) as Status;

const standingsOf = ({ tasks }: Status) => Object.fromEntries(tasks.map(task => [task.id, task.standing]));

describe('reprise status', () => {
  it('says how to start a worker if there is none, and creates nothing', async () => {
    const at = project();
    const before = at.checkout();
    const { code, stdout, stderr } = await at.run(['status']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.replace(/\([0-9a-f]{10}\)/, '(<commit>)')).toMatchInlineSnapshot(`
      "no workers on main (<commit>)
       start one: reprise worker

      tasks: 1 ready, 1 draft
       ·  fix-readme  P1  ready
       –  日本語      P2  draft
      "
    `);
    const { workers, locks, abandoned, parked, branch, main } = await statusOf(at);
    expect({ workers, locks, abandoned, parked, branch }).toEqual({
      workers: [],
      locks: [],
      abandoned: [],
      parked: [],
      branch: 'main',
    });
    expect(main).toBe(at.git('rev-parse', 'main'));
    expect(at.has(`${stateOf(at.root)}/reprise.db`)).toBe(false);
    expect(at.checkout()).toBe(before);
  });

  it('is refused outside a repository and in one without commits', async () => {
    const outside = await runInline({ args: ['status'] });
    expect(outside.code).toBe(1);
    expect(outside.stderr).toContain('error[NOT_A_REPOSITORY]');
    expect(outside.stderr).toContain('hint: run it inside a git repository, or make one: git init');
    const empty = await runInline({ git: true, args: ['status'] });
    expect(empty.code).toBe(2);
    expect(empty.stderr).toContain('the repository has no commits yet');
  });

  it('shows the task of each worker, and which workers are dead', async () => {
    const at = project();
    const worker = at.begin(['worker', '--name', 'ärbeiter', '--once']);
    await until(() => at.marks().length > 0);
    const alive = await statusOf(at);
    expect(alive.workers).toMatchObject([
      {
        name: 'ärbeiter',
        life: 'alive',
        state: 'working',
        task: 'fix-readme',
        agent: 'implement',
        step: 'work',
      },
    ]);
    expect(standingsOf(alive)).toEqual({ 'fix-readme': 'held', 日本語: 'draft' });
    const { stdout } = await at.run(['status']);
    // A commit id can look like the id of a run, so it is replaced first.
    const shown = at.stable(stdout.replace(/\([0-9a-f]{10}\)/, '(<commit>)'));
    expect(shown).toMatchInlineSnapshot(`
      "1 worker on main (<commit>)
       ●  ärbeiter  working  <ago>  fix-readme  implement
           work: agent implement (command) started; run <run>

      tasks: 1 held, 1 draft
       ●  fix-readme  P1  held by ärbeiter
       –  日本語  P2  draft
      "
    `);

    worker.kill('SIGKILL');
    await worker.ended;
    const { workers, abandoned } = await statusOf(at);
    expect(workers).toMatchObject([{ name: 'ärbeiter', life: 'dead' }]);
    expect(abandoned).toMatchObject([{ run: alive.workers[0]?.['run'], task: 'fix-readme', by: 'ärbeiter' }]);
    expect((await at.run(['status'])).stdout).toContain('the next worker takes over: reprise worker');

    at.tell('go', '');
    expect((await at.cli(['worker', '--until-idle'])).code).toBe(0);
    const after = await statusOf(at);
    expect(after).toMatchObject({ workers: [], abandoned: [], locks: [] });
    expect(standingsOf(after)).toEqual({ 'fix-readme': 'landed', 日本語: 'draft' });
    expect(at.leftRunning()).toEqual([]);
  });

  it('shows the holder of each lock and the workers that wait for it', async () => {
    const at = agentProject({
      agents: {
        implement: patient,
        dispatch: 'touch "$MARKS.asked"; until [ -e "$MARKS.go" ]; do sleep 0.05; done',
      },
      files,
      config: 'workers: { agent: implement, dispatch: agent }',
    });
    const workers = at.begin(['worker', '--workers', '2', '--once']);
    await until(() => at.has('.git/marks.asked'));
    const holders = async () => {
      const { locks } = await statusOf(at);
      return locks.map(({ kind, name, holder, waiting }) => ({
        kind,
        name,
        all: [holder, ...(waiting as string[])],
      }));
    };
    await expect
      .poll(async () => (await holders()).map(({ kind, name, all }) => [kind, name, all.toSorted()]), {
        timeout: 50_000,
      })
      .toEqual([['agent', 'dispatch', ['worker-1', 'worker-2']]]);
    expect((await at.run(['status'])).stdout).toMatch(/ dispatch {2}held by worker-\d; worker-\d waiting\n/);
    workers.kill('SIGTERM');
    await workers.ended;
    expect(await holders()).toEqual([]);
  });

  it('shows parked work and how to inspect it', async () => {
    const at = agentProject({
      agents: { implement: 'echo half > half.txt; echo "<next>give-up: it is too hard</next>"' },
      files,
      config,
    });
    expect((await at.cli(['worker', '--once'])).code).toBe(1);
    const { parked, tasks } = await statusOf(at);
    expect(parked).toMatchObject([{ branch: 'reprise/parked/fix-readme', task: 'fix-readme' }]);
    expect(tasks.find(({ id }) => id === 'fix-readme')).toMatchObject({ standing: 'failed' });
    expect((await at.run(['status'])).stdout).toContain(
      'inspect it: git log main..reprise/parked/fix-readme',
    );
  });

  it('reports a failing `tasks.command` and shows the rest', async () => {
    const at = agentProject({
      agents: { implement: patient },
      config: `${config}\ntasks: { command: "echo no >&2; exit 3" }`,
    });
    const { code, stdout } = await at.run(['status']);
    expect(code).toBe(0);
    expect(stdout).toContain('the command that lists the tasks failed: echo no >&2; exit 3');
  });

  it('ends on Ctrl-C while `tasks.command` is running', async () => {
    const at = agentProject({
      agents: { implement: patient },
      config: 'tasks: { command: "echo started >> $MARKS; exec sleep 1000" }',
    });
    for (const [args, code] of [
      [['status'], 130],
      [['status', '--watch'], 0],
      [['tasks'], 130],
    ] as const) {
      const before = at.marks().length;
      const command = at.begin(args);
      await until(() => at.marks().length > before);
      command.kill('SIGINT');
      const { stdout, ...ended } = await command.ended;
      const stderr = code === 0 ? '' : 'error[CANCELLED]: the command that lists the tasks was stopped\n';
      expect(ended).toEqual({ code, stderr });
      expect(stdout).toBe('');
      expect(at.leftRunning()).toEqual([]);
    }
  });

  it('prints every change with --watch, and does not affect the worker when it ends', async () => {
    const at = project();
    const watch = at.start(['status', '--watch', '--json']);
    const blocks = () => parseLines<Status>(watch.stdout);
    await until(() => blocks().length === 1);
    const worker = at.begin(['worker', '--once']);
    await until(() => blocks().some(({ workers }) => workers[0]?.['state'] === 'working'));
    const plain = at.start(['status', '--watch']);
    await until(() => plain.stdout.includes('held by worker-1'));
    plain.kill('SIGINT');
    expect((await plain.ended).code).toBe(0);
    at.tell('go', '');
    expect((await worker.ended).code).toBe(0);
    await until(() => blocks().some(status => standingsOf(status)['fix-readme'] === 'landed'));
    watch.kill('SIGINT');
    expect((await watch.ended).code).toBe(0);
    const marks = blocks().map(({ workers, ...status }) =>
      JSON.stringify({ ...status, workers: workers.map(({ beat_at, beat_age_ms, ...rest }) => rest) }),
    );
    for (const [index, mark] of marks.entries()) expect(mark).not.toBe(marks[index - 1]);
  });

  it('shows the branch that --branch names', async () => {
    const at = project();
    at.git('branch', 'next');
    writeFileSync(join(at.root, 'issues', 'new.md'), '# New\n');
    expect(JSON.parse((await at.run(['status', '--branch', 'next', '--json'])).stdout)).toMatchObject({
      branch: 'next',
    });
    const { stdout } = await at.run(['status', '--branch', 'next']);
    expect(stdout).toContain('issues/new.md is not on next yet');
    const unknown = await at.run(['status', '--branch', 'nxt']);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('branch nxt does not exist');
  });
});
