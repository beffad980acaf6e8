import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Lab, labWithWork, landIn } from '../test-support.ts';

describe('a checkout of the target', () => {
  it('keeps uncommitted changes to files that the landing does not touch', async () => {
    const { lab, work } = labWithWork();
    lab.commit(lab.root, 'c.txt', 'c\n');
    lab.write('a.txt', 'dirty\n');
    lab.write('c.txt', 'staged\n');
    lab.git('add', 'c.txt');
    lab.write('untracked.txt', 'untracked\n');
    lab.commit(work, 'b.txt', 'b\n');
    expect(await landIn(lab)).toMatchObject({ kind: 'landed', checkout: lab.root });
    expect(lab.git('status', '--porcelain')).toBe(' M a.txt\nM  c.txt\n?? untracked.txt');
    expect(readFileSync(join(lab.root, 'a.txt'), 'utf8')).toBe('dirty\n');
  });

  it.each([
    ['changed', 'a.txt', (lab: Lab) => lab.write('a.txt', 'dirty\n')],
    ['untracked', 'b.txt', (lab: Lab) => lab.write('b.txt', 'mine\n')],
    [
      'staged',
      'a.txt',
      (lab: Lab) => {
        lab.write('a.txt', 'staged\n');
        lab.git('add', 'a.txt');
      },
    ],
  ])('blocks the landing if a file that is %s would be overwritten', async (_, file, disturb) => {
    const { lab, work } = labWithWork();
    lab.commit(work, file, 'landed\n');
    disturb(lab);
    const before = lab.fingerprint();
    const verify = { path: lab.workspace('scratch'), run: () => expect.unreachable() };
    expect(await landIn(lab, { verify })).toMatchObject({
      kind: 'main-checkout-in-the-way',
      target: 'main',
      path: lab.root,
      files: [file],
      why: `main is checked out in ${lab.root}, and landing would overwrite uncommitted changes there: ${file}`,
      hint: `stash them, then land again: git -C '${lab.root}' stash push --include-untracked`,
    });
    expect(lab.fingerprint()).toEqual(before);
  });

  it('blocks the landing if an ignored file would be overwritten', async () => {
    const { lab, work } = labWithWork();
    writeFileSync(join(lab.root, '.git/info/exclude'), '.env\n');
    lab.write('.env', 'SECRET=1\n');
    lab.write('.env', 'landed\n', work);
    lab.gitAt(work, 'add', '--force', '.env');
    lab.gitAt(work, 'commit', '--quiet', '--message=Add .env');
    expect(await landIn(lab)).toMatchObject({ kind: 'main-checkout-in-the-way', path: lab.root });
    expect(readFileSync(join(lab.root, '.env'), 'utf8')).toBe('SECRET=1\n');
  });

  it('blocks the landing during a rebase or a merge', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'a.txt', 'ours\n');
    lab.git('branch', 'other', 'main~1');
    lab.git('switch', '--quiet', 'other');
    lab.commit(lab.root, 'a.txt', 'theirs\n');
    lab.git('switch', '--quiet', 'main');
    expect(() => lab.git('rebase', '--quiet', 'other')).toThrow();
    expect(await landIn(lab)).toMatchObject({
      kind: 'main-checkout-in-the-way',
      why: 'main is being rebased',
    });
    lab.git('rebase', '--abort');
    expect(() => lab.git('merge', '--quiet', 'other')).toThrow();
    const main = lab.git('rev-parse', 'main');
    expect(await landIn(lab)).toMatchObject({ kind: 'main-checkout-in-the-way' });
    expect(lab.git('rev-parse', 'main')).toBe(main);
  });

  it.each(['--detach', 'feat/x'])('is left alone after `git switch %s`', async to => {
    const { lab, work } = labWithWork();
    lab.git('switch', '--quiet', ...(to === '--detach' ? [to] : ['--create', to]));
    lab.write('a.txt', 'dirty\n');
    const commit = lab.commit(work, 'a.txt', 'landed\n');
    const before = lab.fingerprint();
    expect(await landIn(lab)).toMatchObject({ kind: 'landed', commit, checkout: undefined });
    expect(lab.fingerprint()).toEqual(before);
    expect(lab.git('rev-parse', 'main')).toBe(commit);
  });
});
