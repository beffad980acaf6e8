import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Lab, labWithWork, landIn, subjectsOnMain } from '../test-support.ts';

describe('the verification of a landing', () => {
  it('runs on the rebased work, in a folder that is removed afterwards', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    const path = lab.workspace('scratch');
    const seen: string[] = [];
    const verify = {
      path,
      run: async (checkout: { path: string; commit: string }) => {
        seen.push(lab.gitAt(checkout.path, 'ls-files'), lab.gitAt(checkout.path, 'rev-parse', 'HEAD'));
        writeFileSync(join(checkout.path, 'left.txt'), 'left');
        return { passed: true, output: '' };
      },
    };
    const landing = await landIn(lab, { verify });
    expect(landing).toMatchObject({ kind: 'landed' });
    expect(seen).toEqual(['a.txt\nb.txt\nmain.txt', 'commit' in landing && landing.commit]);
    expect(existsSync(path)).toBe(false);
    expect(lab.git('worktree', 'list').split('\n')).toHaveLength(2);
  });

  it('leaves the target alone if it fails, and reports the end of its output', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const before = lab.fingerprint();
    const output = `${'x'.repeat(100_000)}\n1 test failed\n`;
    const landing = await landIn(lab, {
      verify: { path: lab.workspace('scratch'), run: async () => ({ passed: false, output }) },
    });
    expect(landing).toMatchObject({
      kind: 'verify-failed',
      target: 'main',
      commit,
      output: expect.stringMatching(/1 test failed\n$/),
      why: 'verification failed after rebasing onto main',
      hint: `commit a fix, then land again; to see the changes: git -C '${work}' diff main...`,
    });
    expect(lab.fingerprint()).toEqual(before);
  });

  it('runs again if the target moves meanwhile, up to the maximum number of attempts', async () => {
    const { lab, work } = labWithWork();
    lab.git('switch', '--quiet', '--detach');
    lab.commit(work, 'b.txt', 'b\n');
    let rounds = 0;
    const race = (times: number) => ({
      path: lab.workspace('scratch'),
      run: async () => {
        if (rounds++ < times) {
          const commit = lab.commit(lab.root, `race-${rounds}.txt`, 'x\n');
          lab.git('update-ref', 'refs/heads/main', commit);
        }
        return { passed: true, output: '' };
      },
    });
    expect(await landIn(lab, { verify: race(9), maxAttempts: 2 })).toEqual({
      kind: 'lost-the-race',
      target: 'main',
      attempts: 2,
      why: 'main moved 2 times during the landing',
      hint: 'land again when main changes less often',
    });
    expect(rounds).toBe(2);
    expect(await landIn(lab, { verify: race(3), maxAttempts: 2 })).toMatchObject({ kind: 'landed' });
    expect(subjectsOnMain(lab)).toEqual([
      'Begin',
      'Write race-1.txt',
      'Write race-2.txt',
      'Write race-3.txt',
      'Write b.txt',
    ]);
  });

  it('runs again if the target was reset to an earlier commit meanwhile', async () => {
    const lab = new Lab();
    const begin = lab.git('rev-parse', 'main');
    lab.commit(lab.root, 'taken-back.txt', 'x\n');
    lab.git('worktree', 'add', '--quiet', '-b', 'work', lab.workspace('work'));
    lab.commit(lab.workspace('work'), 'b.txt', 'b\n');
    const run = async () => {
      lab.git('reset', '--quiet', '--hard', begin);
      return { passed: true, output: '' };
    };
    expect(await landIn(lab, { verify: { path: lab.workspace('scratch'), run } })).toMatchObject({
      kind: 'landed',
      from: begin,
      subjects: ['Write taken-back.txt', 'Write b.txt'],
    });
  });

  it('runs for one landing at a time', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    lab.git('branch', 'second', 'main');
    lab.gitAt(work, 'switch', '--quiet', 'second');
    lab.commit(work, 'c.txt', 'c\n');
    const order: string[] = [];
    const verify = (branch: string) => ({
      path: lab.workspace('scratch'),
      run: async () => {
        order.push(`${branch} in`);
        for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
        order.push(`${branch} out`);
        return { passed: true, output: '' };
      },
    });
    const landings = await Promise.all(
      ['work', 'second'].map(branch => landIn(lab, { source: { branch }, verify: verify(branch) })),
    );
    expect(landings.map(each => each.kind)).toEqual(['landed', 'landed']);
    expect(order.map(each => each.split(' ')[1])).toEqual(['in', 'out', 'in', 'out']);
  });

  it('removes the folder that a crash left behind, but never a folder of the user', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    const path = lab.workspace('scratch');
    const reason = 'reprise {"kind":"landing","base":"x"}';
    lab.git('worktree', 'add', '--quiet', '--detach', '--lock', '--reason', reason, path);
    const verify = { path, run: async () => ({ passed: true, output: '' }) };
    expect(await landIn(lab, { verify })).toMatchObject({ kind: 'landed' });
    lab.commit(work, 'c.txt', 'c\n');
    mkdirSync(path);
    await expect(landIn(lab, { verify })).rejects.toThrow('is needed for landing');
    expect(existsSync(path)).toBe(true);
  });

  it('leaves nothing behind if it is cancelled', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    const main = lab.git('rev-parse', 'main');
    const stop = new AbortController();
    const path = lab.workspace('scratch');
    const run = async () => {
      stop.abort(new Error('enough'));
      return { passed: true, output: '' };
    };
    await expect(landIn(lab, { verify: { path, run }, signal: stop.signal })).rejects.toThrow('enough');
    expect(existsSync(path)).toBe(false);
    expect(lab.git('rev-parse', 'main')).toBe(main);
  });
});
