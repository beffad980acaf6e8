import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tryLock } from '../../src/git/lock.ts';
import { isSameProcess, processStart, thisProcess } from '../../src/process/table.ts';
import { until } from '../e2e/run-inline.ts';
import {
  nothingLeft,
  type WorkerProject,
  type WorkerProjectOptions,
  workerProject,
} from '../e2e/worker-project.ts';

/** Holds a lock as another live process does. */
function hold(project: WorkerProject, lock: string): void {
  const folder = join(project.root, lock);
  const held = tryLock(folder, { owner: { ...thisProcess(), incarnation: 'other' } });
  expect(held).toBeDefined();
  onTestFinished(() => held?.release());
}

const dispatchLock = '.git/reprise/locks/agents/dispatch/1';
const agentLock = '.git/reprise/locks/agents/slow/1';
const landLock = '.git/reprise/locks/land';

const writes = 'echo new > new.txt; echo "<next>land</next>"';
const never = 'echo $$ >> $MARKS; exec sleep 1000';
const task = { one: '# Do it\n' };

interface Wait {
  readonly project: WorkerProjectOptions;
  /** Prepares the project before the worker starts. */
  readonly first?: (project: WorkerProject) => void;
  /** Output of the worker, or mark of its agent, which shows that the worker waits. */
  readonly sign: RegExp;
  /** Last lines of output of the worker. */
  readonly says: readonly string[];
  readonly claims: readonly string[];
}

const suspends = 'worker-1  suspended one: interrupted by Ctrl-C';
const stops = 'worker-1  stopped by request';

const waits: Readonly<Record<string, Wait>> = {
  'its turn to dispatch': {
    project: { agents: { implement: writes }, tasks: task },
    first: project => hold(project, dispatchLock),
    sign: /waiting for another worker to pick a task/,
    says: [stops],
    claims: [],
  },
  'a running agent': {
    project: { agents: { implement: `echo half > half.txt; ${never}` }, tasks: task },
    sign: /^\d+$/m,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'an agent without changes': {
    project: { agents: { implement: never }, tasks: task },
    sign: /^\d+$/m,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'the verification': {
    project: { agents: { implement: writes }, tasks: task, config: `workers: { verify: "${never}" }` },
    sign: /^\d+$/m,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'the landing of another process': {
    project: { agents: { implement: writes }, tasks: task },
    first: project => hold(project, landLock),
    sign: /waiting for process \d+ to finish its landing/,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'the rate limit of an agent to reset': {
    project: {
      agents: {
        implement: `echo half > half.txt; echo '{ "type": "result", "limit": {} }'`,
      },
      tasks: task,
    },
    sign: /worker-1 {2}pausing for 5m/,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'a free slot of an agent': {
    project: {
      files: { 'slow.sh': writes },
      tasks: task,
      config: `  slow: { kind: command, command: [sh, slow.sh], max_concurrency: 1 }
workers: { agent: slow }`,
    },
    first: project => hold(project, agentLock),
    sign: /waiting for a free slot of agent slow/,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'the setup of a worktree': {
    project: { agents: { implement: writes }, tasks: task, config: `worktrees: { setup: "${never}" }` },
    sign: /^\d+$/m,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'a checkout that blocks the landing': {
    project: { agents: { implement: 'echo theirs > a.txt; echo "<next>land</next>"' }, tasks: task },
    first: project => project.write({ 'a.txt': 'mine\n' }),
    sign: /waiting to land one, which is done/,
    says: [suspends, stops],
    claims: ['one held'],
  },
  'a command that lists the tasks': {
    project: { agents: { implement: writes }, config: `tasks: { command: "${never}" }` },
    sign: /^\d+$/m,
    says: [stops],
    claims: [],
  },
  'new tasks': {
    project: { agents: { implement: writes } },
    sign: /sleeping: /,
    says: [stops],
    claims: [],
  },
};

const claimsOf = (project: WorkerProject) =>
  project.inStore(async store => (await store.claims.list()).map(({ task, state }) => `${task} ${state}`));

describe('Ctrl-C while a worker waits for', () => {
  it.each(Object.entries(waits))(
    '%s stops it without losing work',
    async (_, { first, sign, says, ...wait }) => {
      const project = workerProject(wait.project);
      first?.(project);
      const main = project.git('rev-parse', 'main');
      const worker = project.worker();
      await until(() => sign.test(`${worker.stderr}\n${project.marks().join('\n')}`));
      worker.kill('SIGINT');
      const { code, stderr } = await worker.ended;
      expect(linesOf(stderr).slice(-says.length), stderr).toEqual(says);
      expect(code).toBe(130);
      expect(project.git('rev-parse', 'main')).toBe(main);
      expect(await claimsOf(project)).toEqual(wait.claims);
      const held = [dispatchLock, agentLock, landLock].map(lock => join(project.root, lock));
      const { locks, processes, ...rest } = await project.leftovers();
      expect({ processes, locks: locks.filter(lock => !held.includes(lock)) }).toEqual({
        processes: [],
        locks: [],
      });
      // A suspended task keeps its claim, its worktree and its branch.
      if (wait.claims.length === 0) expect({ ...nothingLeft, ...rest }).toEqual(nothingLeft);
    },
  );
});

describe('Ctrl-C twice while a worker waits for', () => {
  it.each(Object.entries(waits))(
    '%s leaves nothing behind that it does not report',
    async (_, { first, sign, ...wait }) => {
      const project = workerProject(wait.project);
      first?.(project);
      const main = project.git('rev-parse', 'main');
      const worker = project.worker();
      await until(() => sign.test(`${worker.stderr}\n${project.marks().join('\n')}`));
      worker.kill('SIGINT');
      worker.kill('SIGINT');
      const { code, stderr } = await worker.ended;
      expect(code, stderr).toBe(130);
      expect(project.git('rev-parse', 'main')).toBe(main);
      const { worktrees, branches, processes } = await project.leftovers();
      expect(processes).toEqual([]);
      const folders = worktrees.map(line => line.replace('worktree ', ''));
      // A branch is reported together with the folder that has it checked out.
      const isCheckedOut = (branch: string) =>
        folders.some(folder => folder.endsWith(branch.replace('reprise/', '/')));
      const left = [...folders, ...branches.filter(branch => !isCheckedOut(branch))];
      const isResumable = left.length > 0 && (await isTakenOver(project));
      for (const each of isResumable ? [] : left) expect(stderr).toContain(`${each} is left`);
    },
  );
});

/** Whether the next worker takes over the run, in which case its workspace is not a leftover. */
const isTakenOver = async (project: WorkerProject): Promise<boolean> =>
  (await project.cli(['status'])).stdout.includes('the next worker takes over: reprise worker');

/** Returns the lines of output without their times. */
const linesOf = (text: string): readonly string[] =>
  text
    .trim()
    .split('\n')
    .map(line => line.replace(/^\d\d:\d\d:\d\d /, ''));

describe('a second Ctrl-C', () => {
  it('stops a worker immediately, even if its agent ignores signals, and another worker resumes the task', async () => {
    const project = workerProject({
      agents: {
        implement: `
          if [ -e $MARKS.mild ]; then ${writes}; exit; fi
          exec > /dev/null 2>&1
          trap 'echo deaf >> $MARKS' INT TERM
          echo "pid $$" >> $MARKS
          while :; do sleep 0.05 || true; done`,
      },
      tasks: task,
    });
    const worker = project.worker();
    await until(() => project.marks().length > 0);
    const pid = Number(project.marks()[0]?.slice(4));
    const agent = { pid, processStart: processStart(pid) ?? 'gone' };
    worker.kill('SIGINT');
    await until(() => project.marks().includes('deaf'));
    worker.kill('SIGINT');
    const { code } = await worker.ended;
    expect(code).toBe(130);
    expect(isSameProcess(agent)).toBe(false);
    project.tell('mild', '');
    const other = await project.worker(['--until-idle']).ended;
    expect(other.code, other.stderr).toBe(0);
    expect(project.landed()).toEqual(['one']);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });

  it('neither fails the task nor loses work if it leaves no time to release the task', async () => {
    const project = workerProject({
      agents: {
        implement: `
          if [ -e $MARKS.mild ]; then ${writes}; exit; fi
          echo half > half.txt
          exec > /dev/null 2>&1
          trap '' INT TERM
          echo begun >> $MARKS
          while :; do sleep 0.05 || true; done`,
      },
      tasks: task,
    });
    const worker = project.worker(['--json']);
    await until(() => project.marks().length > 0);
    worker.kill('SIGINT');
    await until(() => worker.stdout.includes('"run.suspended"'));
    worker.kill('SIGKILL');
    await worker.ended;
    project.tell('mild', '');
    const other = await project.worker(['--until-idle']).ended;
    expect(other.code, other.stderr).toBe(0);
    expect(project.landed()).toEqual(['one']);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });
});

it('a worker reports a branch that it could not remove and the command that removes it', async () => {
  const project = workerProject({
    agents: {
      implement: `
        git worktree add --quiet --force "$MARKS.elsewhere" "$(git branch --show-current)"
        echo "<next>give-up: no solution is known</next>"`,
    },
    tasks: task,
  });
  const { code, stderr } = await project.worker(['--once', '--quiet']).ended;
  expect(code).toBe(1);
  const { branches } = await project.leftovers();
  expect(branches).toHaveLength(1);
  expect(linesOf(stderr), stderr).toContain(
    `worker-1  note: the branch ${branches[0]} was not removed: it could not be removed; to clean up: reprise gc`,
  );
  project.git('worktree', 'remove', '--force', join(project.root, '.git/marks.elsewhere'));
  expect((await project.cli(['gc'])).code).toBe(0);
  expect((await project.leftovers()).branches).toEqual([]);
});

describe('a suspended worker', () => {
  it('leaves work that was only waiting to land to the next worker, which does not repeat it', async () => {
    const project = workerProject({
      agents: { implement: 'echo asked >> $MARKS; echo theirs > a.txt; echo "<next>land</next>"' },
      tasks: task,
    });
    project.write({ 'a.txt': 'mine\n' });
    const worker = project.worker();
    await until(() => /waiting to land one, which is done/.test(worker.stderr));
    worker.kill('SIGTERM');
    expect((await worker.ended).code).toBe(143);
    project.git('stash', 'push', '--quiet', '--include-untracked');
    const other = await project.worker(['--until-idle']).ended;
    expect(other.code, other.stderr).toBe(0);
    expect(project.landed()).toEqual(['one']);
    expect(project.marks()).toEqual(['asked']);
    expect(await project.leftovers()).toEqual(nothingLeft);
  });

  it('is left alone while its task has used up its own budget, and is continued once that is raised', async () => {
    const spend = `echo '{"type":"usage","inputTokens":100,"outputTokens":1,"costUsd":2}'`;
    const implement = `if [ -e $MARKS.mild ]; then ${writes}; exit; fi; ${spend}; exec sleep 1000`;
    const project = workerProject({
      agents: { implement },
      tasks: task,
      config: 'runtime: { budget: { cost_usd: 1 } }',
    });
    const first = await project.worker(['--until-idle']).ended;
    expect(first.code, first.stderr).toBe(4);
    const second = await project.worker(['--until-idle']).ended;
    expect(second.stderr).not.toContain('taking over');
    expect((await project.cli(['status'])).stdout).toContain('raise `runtime.budget`');
    project.tell('mild', '');
    project.write({ 'reprise.yaml': project.read('reprise.yaml').replace('cost_usd: 1', 'cost_usd: 9') });
    const third = await project.worker(['--until-idle']).ended;
    expect(third.code, third.stderr).toBe(0);
    expect(project.landed()).toEqual(['one']);
  });
});

it('a worker whose agent cannot start makes the other workers of its process suspend their runs', async () => {
  const project = workerProject({
    agents: {
      implement: `if [ -e $MARKS.mild ]; then ${writes}; exit; fi; echo $$ >> $MARKS; exec sleep 1000`,
    },
    tasks: {
      busy: '---\npriority: P0\n---\n# Take long\n',
      impossible: '---\npriority: P1\nagent: gone\n---\n# Fail\n',
    },
    config: '  gone: { kind: command, command: [no-such-program] }',
  });
  const { code, stderr } = await project.worker(['--workers', '2', '--until-idle']).ended;
  expect(code, stderr).toBe(1);
  expect(stderr).toContain('AGENT_NOT_FOUND');
  const runs = await project.inStore(store => store.list());
  expect(runs.filter(({ status }) => status === 'running' || status === 'cancelled')).toEqual([]);
  expect((await project.leftovers()).processes).toEqual([]);
  expect(runs.map(({ suspension }) => suspension?.reason).filter(Boolean)).toEqual([
    'another worker of the process failed',
  ]);
});
