import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from './run-inline.ts';
import { nothingLeft, workerProject } from './worker-project.ts';

/** Changes own.txt. The first session also commits a change of the file `theirs` to main, as another developer would. */
const implement = (theirs: string) => `
  if grep -q '<<<<<<<' own.txt; then echo both > own.txt; echo "<next>land</next>"; exit; fi
  root=$(dirname "$(git rev-parse --path-format=absolute --git-common-dir)")
  if [ ! -s $MARKS ]; then
    echo moved >> $MARKS
    (cd "$root" && echo theirs > ${theirs} && git add ${theirs} && git commit --quiet -m "Theirs" -- ${theirs})
  fi
  echo mine > own.txt
  echo "<next>land</next>"`;

const leftoversButBranches = async (project: ReturnType<typeof workerProject>) => ({
  ...(await project.leftovers()),
  branches: [],
});

it('work waits until uncommitted changes that it would overwrite are gone', async () => {
  const project = workerProject({
    agents: { implement: 'echo mine > own.txt; echo "<next>land</next>"' },
    tasks: { one: '# Change the file\n' },
    files: { 'own.txt': 'old\n' },
  });
  project.write({ 'own.txt': 'not committed\n' });
  const worker = project.worker();
  await until(() => worker.stderr.includes('waiting to land one, which is done'));
  expect(project.read('own.txt')).toBe('not committed\n');
  expect(worker.stderr).toContain('stash push --include-untracked');
  project.git('stash', 'push', '--quiet');
  await until(() => project.landed().length === 1);
  await until(() => worker.stderr.includes('sleeping'));
  worker.kill('SIGINT');
  await worker.ended;
  expect(worker.stderr.split('waiting to land').length - 1).toBe(1);
  expect(project.read('own.txt')).toBe('mine\n');
  expect(await project.leftovers()).toEqual(nothingLeft);
});

describe('work that a worker does not land itself', () => {
  it('is rebased onto main, verified and left on its own branch', async () => {
    const project = workerProject({
      agents: { implement: implement('theirs.txt') },
      tasks: { one: '# Change the file\n' },
      files: { 'own.txt': 'old\n' },
      config: 'workers: { land: branch, verify: "cat own.txt theirs.txt" }\n',
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect(code, stderr).toBe(0);
    expect(project.git('log', '--reverse', '--format=%s', 'reprise/task/one').split('\n').slice(-2)).toEqual([
      'Theirs',
      'Change the file',
    ]);
    expect(project.git('merge-base', 'main', 'reprise/task/one')).toBe(project.git('rev-parse', 'main'));
    expect(await leftoversButBranches(project)).toEqual(nothingLeft);
    expect(project.git('branch', '--list', 'reprise/*', '--format=%(refname:short)')).toBe(
      'reprise/task/one',
    );
  });

  it('is returned to its agent on a conflict, then pushed to the remote', async () => {
    const remote = mkdtempSync(join(tmpdir(), 'reprise-remote-'));
    onTestFinished(() => rmSync(remote, { recursive: true, force: true }));
    execFileSync('git', ['init', '--quiet', '--bare', remote]);
    const project = workerProject({
      agents: { implement: implement('own.txt') },
      tasks: { one: '# Change the file\n' },
      files: { 'own.txt': 'old\n' },
      config:
        'workers: { land: pr, verify: "test -s own.txt", pr_command: "git show $REPRISE_BRANCH:own.txt > $MARKS.pr" }\n',
    });
    project.git('remote', 'add', 'origin', remote);
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect(code, stderr).toBe(0);
    expect(project.told('pr')).toBe('both\n');
    expect(
      execFileSync('git', ['-C', remote, 'log', '-1', '--format=%s', 'reprise/task/one']).toString(),
    ).toBe('Change the file\n');
    expect(stderr).toContain('onto main: conflicts in own.txt');
  });

  it('is not announced again if the worker dies after `pr_command` has ended', async () => {
    const remote = mkdtempSync(join(tmpdir(), 'reprise-remote-'));
    onTestFinished(() => rmSync(remote, { recursive: true, force: true }));
    execFileSync('git', ['init', '--quiet', '--bare', remote]);
    const project = workerProject({
      agents: { implement: 'echo mine > own.txt; echo "<next>land</next>"' },
      tasks: { one: '# Change the file\n' },
      files: {
        'own.txt': 'old\n',
        '.gitattributes': 'own.txt filter=slow\n',
        'announce.sh':
          'echo asked >> $MARKS; touch .reprise/workspaces/*/*/*/own.txt; echo now > $MARKS.hang',
      },
      config: 'workers: { land: pr, pr_command: sh announce.sh }\n',
    });
    project.git('remote', 'add', 'origin', remote);
    // Git runs this filter on the touched file when the workspace of the delivered work is removed.
    const hang = 'if grep -q now $MARKS.hang; then echo yes > $MARKS.hung; exec sleep 1000; fi; exec cat';
    project.git('config', 'filter.slow.clean', hang);
    project.tell('hang', '');
    project.tell('hung', '');
    const worker = project.worker();
    await until(() => project.told('hung') !== '');
    worker.kill('SIGKILL');
    await worker.ended;
    project.tell('hang', '');
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect(code, stderr).toBe(0);
    expect(project.marks()).toEqual(['asked']);
    expect((await project.inStore(store => store.claims.list())).map(({ state }) => state)).toEqual([
      'delivered',
    ]);
    expect(await leftoversButBranches(project)).toEqual(nothingLeft);
  });

  it('is parked if it fails the verification', async () => {
    const project = workerProject({
      agents: { implement: implement('theirs.txt') },
      tasks: { one: '# Change the file\n' },
      files: { 'own.txt': 'old\n' },
      config: 'workers: { land: branch, resolve: 1, verify: "echo no good; exit 1" }\n',
    });
    const { code, stderr } = await project.worker(['--until-idle']).ended;
    expect(code).toBe(6);
    expect(stderr).toContain('no good');
    expect(project.git('branch', '--list', 'reprise/*', '--format=%(refname:short)')).toBe(
      'reprise/parked/one',
    );
  });
});
