import { describe, expect, it } from 'vitest';
import { isSameProcess, processStart } from '../../src/process/table.ts';
import { createProject, defineModule, parseLines, type TestProject, until } from './run-inline.ts';

interface Line {
  readonly type: string;
  readonly step?: string;
  readonly attempt?: number;
  readonly status?: string;
  readonly at?: string;
  readonly data?: { readonly reason?: string; readonly delayMs?: number };
}

const history = async (project: TestProject) =>
  parseLines<Line>((await project.run(['history', '--raw', '--json'])).stdout);
const types = (events: readonly Line[]) => events.map(({ type, step }) => (step ? `${type} ${step}` : type));

/** Identities of the processes that wrote their ids into a file. */
const processesIn = (project: TestProject, file: string) =>
  project
    .read(file)
    .trim()
    .split('\n')
    .map(pid => ({ pid: Number(pid), processStart: processStart(Number(pid)) ?? 'gone' }));

const tree = `
steps:
  - { id: first, run: "echo first >> marks" }
  - id: grow
    needs: [first]
    run: |
      (echo $BASHPID >> pids; exec sleep 1000) &
      (echo $BASHPID >> pids; exec setsid sleep 1000) &
      echo $$ >> pids
      echo grow >> marks
      wait
  - { id: last, needs: [grow], run: "echo last >> marks" }
`;
const grown = (project: TestProject) =>
  project.read('pids').trim().split('\n').length === 3 && project.read('marks').includes('grow');

describe('a signal', () => {
  it.each([
    ['SIGINT', 130, 'interrupted by Ctrl-C'],
    ['SIGTERM', 143, 'ended by SIGTERM'],
    ['SIGHUP', 129, 'the terminal was closed'],
  ] as const)(
    '%s suspends the run, stops the whole process tree and exits with %i',
    async (signal, code, reason) => {
      const project = createProject({ files: { 'tree.yaml': tree } });
      const run = project.start(['run', 'tree.yaml']);
      await until(() => grown(project));
      const processes = processesIn(project, 'pids');
      expect(processes.map(isSameProcess)).toEqual([true, true, true]);
      run.kill(signal);
      const ended = await run.ended;
      expect(ended.code, ended.stderr).toBe(code);
      expect(ended.stderr).toContain('next: reprise resume');
      expect(processes.map(isSameProcess)).toEqual([false, false, false]);
      const events = await history(project);
      expect(types(events).slice(-2)).toEqual(['run.suspended', 'step.interrupted grow']);
      expect(events.at(-2)?.data?.reason).toBe(reason);
      expect(project.read('marks')).toBe('first\ngrow\n');
    },
  );

  it('kills a step that ignores SIGTERM on a second Ctrl-C, and exits immediately', async () => {
    const stubborn = `steps:\n  - id: stubborn\n    run: |\n      exec > /dev/null 2>&1; trap 'echo ignored >> marks' TERM\n      echo $$ >> pids\n      while :; do sleep 0.05 || true; done\n`;
    const project = createProject({ files: { 'stubborn.yaml': stubborn } });
    const run = project.start(['run', 'stubborn.yaml']);
    await until(() => project.read('pids') !== '');
    const processes = processesIn(project, 'pids');
    run.kill('SIGINT');
    await until(() => project.read('marks') !== '');
    run.kill('SIGINT');
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(processes.map(isSameProcess)).toEqual([false]);
    expect(await project.run(['list'])).toMatchObject({ code: 0 });
  });
});

/** Workflow whose second step blocks until the file `gate` exists. */
const gated = `
steps:
  - { id: first, run: "echo first >> marks" }
  - { id: gated, needs: [first], run: "echo gated >> marks; until [ -e gate ]; do sleep 0.02; done" }
  - { id: last, needs: [gated], run: "echo last >> marks" }
`;

const killDuringStep = async (project: TestProject) => {
  const run = project.start(['run', 'gated.yaml']);
  await until(() => project.read('marks').includes('gated'));
  run.kill('SIGKILL');
  await run.ended;
};

describe('kill -9', () => {
  it('interrupts only the running step, which a resume reruns', async () => {
    const project = createProject({ files: { 'gated.yaml': gated } });
    await killDuringStep(project);
    expect(parseLines((await project.run(['list', '--json'])).stdout)).toMatchObject([
      { status: 'interrupted' },
    ]);
    expect((await project.run(['show'])).stdout).toContain('has died');
    project.write({ gate: '' });
    const resumed = await project.run(['resume']);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(project.read('marks')).toBe('first\ngated\ngated\nlast\n');
    expect(types(await history(project))).toEqual([
      'run.started',
      'step.started first',
      'step.completed first',
      'step.started gated',
      'run.resumed',
      'step.interrupted gated',
      'step.started gated',
      'step.completed gated',
      'step.started last',
      'step.completed last',
      'run.completed',
    ]);
  });

  it('gives the same outcome after a resume as an undisturbed run', async () => {
    const project = createProject({ files: { 'gated.yaml': gated } });
    await killDuringStep(project);
    project.write({ gate: '' });
    await project.run(['resume']);
    const killed = await project.run(['history', '--digest']);
    await project.run(['run', 'gated.yaml']);
    expect((await project.run(['history', '--digest'])).stdout).toBe(killed.stdout);
  });

  it('leaves a run that exactly one of two processes can resume', async () => {
    const project = createProject({ files: { 'gated.yaml': gated } });
    await killDuringStep(project);
    const both = [project.start(['resume']), project.start(['resume'])];
    const ends = both.map(async (run, index) => ({ ...(await run.ended), other: both[1 - index] }));
    const { other: winner, ...loser } = await Promise.race(ends);
    expect(loser.code).toBe(1);
    expect(loser.stderr).toContain(`error[RUN_OWNED]: run`);
    expect(loser.stderr).toContain(`process ${winner?.pid} on`);
    project.write({ gate: '' });
    expect(await winner?.ended).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('first\ngated\ngated\nlast\n');
  });

  it('keeps the backoff before the next attempt', async () => {
    // Long enough to kill the run during the backoff, even on a busy machine.
    const flaky = `
steps:
  - id: flaky
    retry: { attempts: 3, backoff: 3s }
    run: 'echo try >> marks; [ "$REPRISE_ATTEMPT" = 2 ]'
`;
    const project = createProject({ files: { 'flaky.yaml': flaky } });
    const run = project.start(['run', 'flaky.yaml', '--json']);
    await until(() => run.stdout.includes('step.retrying'));
    run.kill('SIGKILL');
    await run.ended;
    expect(await project.run(['resume'])).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('try\ntry\n');
    const events = await history(project);
    expect(types(events)).toEqual([
      'run.started',
      'step.started flaky',
      'step.retrying flaky',
      'run.resumed',
      'timer.fired flaky',
      'step.started flaky',
      'step.completed flaky',
      'run.completed',
    ]);
    const [retrying, fired] = ['step.retrying', 'timer.fired'].map(type =>
      events.find(each => each.type === type),
    );
    const dueAt = Date.parse(retrying?.at ?? '') + (retrying?.data?.delayMs ?? 0);
    expect(Date.parse(fired?.at ?? '')).toBeGreaterThanOrEqual(dueAt);
  });
});

it('a function that exits the process does not make its run look successful', async () => {
  const project = createProject({
    files: {
      'exits.mjs': `import { step, workflow } from '${defineModule}';
export default workflow('exits', { steps: [step('a', { run: () => process.exit(0) })] });
`,
    },
  });
  const { code, stderr } = await project.run(['run', 'exits.mjs']);
  expect(code).toBe(1);
  expect(stderr).toContain('the process exited before the command was done');
});
