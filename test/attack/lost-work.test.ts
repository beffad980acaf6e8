import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { until } from '../e2e/run-inline.ts';
import { nothingLeft, type WorkerProject, workerProject } from '../e2e/worker-project.ts';
import { ProcessTree } from '../support/process-trees.ts';

const waits = 'while [ ! -e "$MARKS.go" ]; do sleep 0.05; done';

/** Kills a worker, with all of its processes, when it has written `mark`. Then nothing waits any more. */
async function killAt(project: WorkerProject, mark: string): Promise<void> {
  const worker = project.worker(['--until-idle']);
  await until(() => project.marks().includes(mark));
  await new ProcessTree(worker.pid).kill();
  await worker.ended;
  project.tell('go', '');
}

const worktreesOf = ({ git }: WorkerProject): readonly string[] =>
  git('worktree', 'list', '--porcelain')
    .split('\n')
    .flatMap(line => (line.startsWith('worktree ') ? line.slice('worktree '.length) : []))
    .slice(1);

function deleteWorktrees(project: WorkerProject): void {
  for (const path of worktreesOf(project)) project.git('worktree', 'remove', '--force', '--force', path);
}

const branchesOf = ({ git }: WorkerProject): readonly string[] =>
  git('for-each-ref', '--format=%(refname)', 'refs/heads/reprise').split('\n').filter(Boolean);

/** Finishes the task with another worker. Returns the sessions that were paid for. */
async function finish(project: WorkerProject): Promise<readonly string[]> {
  const { code, stderr } = await project.worker(['--until-idle']).ended;
  expect(code, stderr).toBe(0);
  expect(project.landed()).toEqual(['one']);
  expect(project.git('show', 'main:one.txt')).toBe('work');
  expect(await project.leftovers()).toEqual(nothingLeft);
  return project.marks().filter(mark => mark === 'session');
}

describe('a task whose worker was killed', () => {
  const saved = () =>
    workerProject({
      agents: { implement: 'echo session >> "$MARKS"; echo work > one.txt; echo "<next>land</next>"' },
      tasks: { one: '# One\n' },
      config: `workers:\n  verify: 'echo verify >> "$MARKS"; ${waits}'`,
    });

  it('after its work was saved is done again if the commit no longer exists', async () => {
    const project = saved();
    await killAt(project, 'verify');
    deleteWorktrees(project);
    for (const ref of branchesOf(project)) project.git('update-ref', '-d', ref);
    project.git('reflog', 'expire', '--expire=all', '--all');
    project.git('gc', '--quiet', '--prune=now');
    expect(await finish(project)).toHaveLength(2);
  });

  it('after its work was saved lands that work if only the folder and the branch were deleted', async () => {
    const project = saved();
    await killAt(project, 'verify');
    deleteWorktrees(project);
    for (const ref of branchesOf(project)) project.git('update-ref', '-d', ref);
    expect(await finish(project)).toHaveLength(1);
  });

  it('before its work was saved is done again if the folder is missing', async () => {
    const project = workerProject({
      agents: {
        implement: 'echo session >> "$MARKS"; echo work > one.txt; echo "<next>check</next>"',
        check: `echo check >> "$MARKS"; ${waits}; echo "<next>land</next>"`,
      },
      tasks: { one: '# One\n' },
    });
    await killAt(project, 'check');
    for (const path of worktreesOf(project)) rmSync(path, { recursive: true });
    expect(await finish(project)).toHaveLength(2);
  });
});
