import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lockFolder, takeRepositoryLock } from '../../../src/git/lock.ts';
import type { LandBody } from '../../../src/workflow/model.ts';
import { command, runBody, type WorkLab, workLab } from './support.ts';

const landBody = (given: Partial<LandBody> = {}): LandBody => ({
  kind: 'land',
  onto: () => 'main',
  from: 'fix',
  ...given,
});

/** Returns the branch of a step that ran this script. */
async function branchOf(lab: WorkLab, script: string, worker?: number): Promise<string> {
  const unit = lab.unit(runBody(script, {}), { worker });
  expect(await unit.work()).toMatchObject({ kind: 'completed' });
  return unit.of('workspace.created')[0]?.branch ?? '';
}

const landing = (lab: WorkLab, branch: string | undefined, body = landBody()) =>
  lab.unit(body, { step: 'land', workOf: () => (branch === undefined ? {} : { branch }) });

describe('a landing', () => {
  test('brings the work of a step onto the branch and updates the checkout', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo two > b.txt');
    const unit = landing(lab, branch);
    const from = lab.git.git('rev-parse', 'main');
    const end = await unit.work();
    const commit = lab.git.git('rev-parse', 'main');
    expect(end).toEqual({
      kind: 'completed',
      output: { outcome: 'landed', onto: 'main', commit, branch, landed: [{ branch, commit, commits: 1 }] },
    });
    const subjects = ['fix: echo two > b.txt'];
    expect(unit.notes).toEqual([
      { type: 'landing.started', data: { onto: 'main', branch } },
      {
        type: 'landing.ended',
        data: { outcome: 'landed', onto: 'main', branch, commit, commits: 1, from, subjects },
      },
    ]);
    expect(lab.git.git('show', 'main:b.txt')).toBe('two');
    expect(lab.git.git('status', '--porcelain')).toBe('');
  });

  test('succeeds if there are no new commits, even if repeated', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo two > b.txt');
    await landing(lab, branch).work();
    expect(await landing(lab, branch).work()).toMatchObject({
      kind: 'completed',
      output: { outcome: 'nothing-to-land', onto: 'main', branch, landed: [] },
    });
  });

  test('counts as landed if a crash prevented its record', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo two > b.txt');
    const unit = landing(lab, branch);
    await unit.work({ crashAfter: 'landing.started' });
    await landing(lab, branch).work();
    const output = { outcome: 'landed', onto: 'main', branch };
    expect(await unit.work()).toMatchObject({ kind: 'completed', output });
    // A recorded landing is not repeated.
    expect(await unit.work()).toMatchObject({ kind: 'completed', output });
    expect(unit.of('landing.started')).toHaveLength(2);
  });

  test('lands all copies of a fan-out in order', async () => {
    const lab = await workLab();
    const branches = [await branchOf(lab, 'echo 0 > x0', 0), await branchOf(lab, 'echo 2 > x2', 2)];
    const workers = branches.map((branch, index) => ({ worker: index * 2, output: null, branch }));
    const unit = lab.unit(landBody(), { step: 'land', workOf: () => ({ workers }) });
    expect(await unit.work()).toMatchObject({
      output: {
        outcome: 'landed',
        branch: branches[1],
        landed: [{ branch: branches[0] }, { branch: branches[1] }],
      },
    });
    expect(lab.git.git('log', '--format=%s', '-2')).toBe('fix:2: echo 2 > x2\nfix:0: echo 0 > x0');
  });

  test('verifies the result with the values of the step', async () => {
    const lab = await workLab({ setup: ['echo ready > .ready'] });
    const branch = await branchOf(lab, 'echo two > b.txt');
    lab.git.commit(lab.root, 'c.txt', 'three');
    const verify = command('cat .ready a.txt b.txt c.txt; test "$PWD" = "$REPRISE_WORKSPACE"');
    expect(await landing(lab, branch, landBody({ verify })).work()).toMatchObject({
      output: { outcome: 'landed' },
    });
    expect(lab.log('land.1.verify.log')).toBe('ready\none\ntwo\nthree');
  });
});

describe('a refused landing', () => {
  const refused = (message: RegExp, hint: RegExp) => ({
    kind: 'failed',
    error: {
      code: 'CANNOT_LAND',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    },
  });

  test('leaves everything unchanged after a conflict', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo mine > a.txt');
    lab.git.commit(lab.root, 'a.txt', 'theirs');
    const before = lab.git.fingerprint();
    const unit = landing(lab, branch);
    expect(await unit.work()).toMatchObject(
      refused(
        /cannot rebase.*onto main: conflicts in a\.txt/,
        new RegExp(`rebase main.*reprise land ${lab.runId} fix`, 's'),
      ),
    );
    expect(unit.of('landing.ended')).toMatchObject([{ outcome: 'conflict', message: expect.any(String) }]);
    expect(lab.git.fingerprint()).toEqual(before);
  });

  test('reports the output of a failed verification', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo two > b.txt');
    const verify = command('echo red tests; exit 1');
    expect(await landing(lab, branch, landBody({ verify })).work()).toMatchObject(
      refused(/verification failed.*red tests/s, /reprise land/),
    );
    expect(lab.git.git('log', '--format=%s', 'main')).toBe('Begin');
  });

  test('names the uncommitted file that blocks it', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo mine > a.txt');
    lab.git.write('a.txt', 'not committed');
    expect(await landing(lab, branch).work()).toMatchObject(refused(/a\.txt/, /stash/));
  });

  test('reports a missing source or target branch', async () => {
    const lab = await workLab();
    expect(await landing(lab, undefined).work()).toMatchObject(
      refused(/nothing to land: fix has no branch/, /workspace/),
    );
    const branch = await branchOf(lab, 'echo two > b.txt');
    const nowhere = landing(lab, branch, landBody({ onto: () => '--orphan $(x)' }));
    expect(await nowhere.work()).toMatchObject(refused(/no branch "--orphan \$\(x\)"/, /./));
  });

  test('names the branches of a fan-out that already landed', async () => {
    const lab = await workLab();
    const branches = [await branchOf(lab, 'echo 0 > a.txt', 0), await branchOf(lab, 'echo 1 > a.txt', 1)];
    const workers = branches.map((branch, worker) => ({ worker, output: null, branch }));
    const unit = lab.unit(landBody(), { step: 'land', workOf: () => ({ workers }) });
    expect(await unit.work()).toMatchObject(
      refused(new RegExp(`already landed: ${branches[0]}`), new RegExp(`reprise land ${lab.runId} fix:1`)),
    );
  });
});

test('cancelling a landing stops its verification and moves nothing', async () => {
  const lab = await workLab();
  const branch = await branchOf(lab, 'echo two > b.txt');
  const here = lab.seen(each => each.kind === 'output' && each.line === 'verifying');
  const unit = landing(lab, branch, landBody({ verify: command('echo verifying; sleep 1000') }));
  expect(await unit.work({ cancelWhen: here })).toEqual({ kind: 'cancelled', reason: 'cancelled' });
  expect(lab.git.git('log', '--format=%s', 'main')).toBe('Begin');
  expect(lab.git.git('worktree', 'list')).not.toContain('landing');
});

describe('a landing that waits for another one', () => {
  test('runs after it on top of its result', async () => {
    const lab = await workLab();
    const branches = [await branchOf(lab, 'echo 0 > x0', 0), await branchOf(lab, 'echo 1 > x1', 1)];
    const here = lab.seen(each => each.kind === 'output' && each.line === 'verifying');
    const gate = join(lab.git.folder, 'gate');
    const slow = command(`echo verifying; until test -e '${gate}'; do sleep 0.01; done`);
    const first = landing(lab, branches[0], landBody({ verify: slow })).work();
    await here;
    const unit = lab.unit(landBody(), {
      step: 'land',
      worker: 1,
      workOf: () => ({ branch: branches[1] ?? '' }),
    });
    const second = unit.work();
    await unit.recorded('landing.started');
    writeFileSync(gate, '');
    expect([await first, await second]).toMatchObject([{ kind: 'completed' }, { kind: 'completed' }]);
    expect(lab.git.git('log', '--format=%s', '-2')).toBe('fix:1: echo 1 > x1\nfix:0: echo 0 > x0');
  });

  test('can be cancelled and leaves the lock to others', async () => {
    const lab = await workLab();
    const branch = await branchOf(lab, 'echo two > b.txt');
    const lock = await takeRepositoryLock({
      repository: await lab.git.open(),
      owner: lab.git.owner,
      name: 'land',
    });
    const unit = landing(lab, branch);
    expect(await unit.work({ cancelWhen: unit.recorded('landing.started') })).toMatchObject({
      kind: 'cancelled',
    });
    expect(lab.git.git('log', '--format=%s', 'main')).toBe('Begin');
    lock.release();
    expect(await unit.work()).toMatchObject({ kind: 'completed' });
  });
});

test('a landing whose lock was taken over moves nothing', async () => {
  const lab = await workLab();
  const branch = await branchOf(lab, 'echo two > b.txt');
  const folder = lockFolder(await lab.git.open(), 'land');
  // A process with another mutex has the lock now, and a larger token.
  const taken = { token: 9, unsettled: [], beat: 0 };
  const unit = landing(
    lab,
    branch,
    landBody({ verify: command(`echo '${JSON.stringify(taken)}' > '${folder}/holder.json'`) }),
  );
  expect(await unit.work()).toMatchObject({
    kind: 'failed',
    error: { message: expect.stringContaining('moved 5 times') },
  });
  expect(lab.git.git('log', '--format=%s', 'main')).toBe('Begin');
});
