import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type LandRequest, land } from './landing.ts';
import { openRepository } from './repository.ts';
import { compiledRoom, Lab, plainEnvironment, runTogether, Worker } from './test-support.ts';

const compiled = compiledRoom();

/** A branch `work` with its own worktree, which began where main is. */
function labWithWork() {
  const lab = new Lab();
  const work = lab.workspace('work');
  lab.git('worktree', 'add', '--quiet', '-b', 'work', work);
  return { lab, work };
}

const landIn = async (lab: Lab, changes: Partial<LandRequest> = {}) =>
  land({
    repository: await lab.open(),
    owner: lab.owner,
    source: { branch: 'work' },
    onto: 'main',
    ...changes,
  });

const subjects = (lab: Lab) => lab.git('log', '--reverse', '--format=%s', 'main').split('\n');

describe('landing', () => {
  it('fast-forwards main, and with it the checkout that it is in', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const from = lab.git('rev-parse', 'main');
    expect(await landIn(lab)).toEqual({
      kind: 'landed',
      commit,
      from,
      subjects: ['Write b.txt'],
      checkout: lab.root,
      token: 1,
    });
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(readFileSync(join(lab.root, 'b.txt'), 'utf8')).toBe('b\n');
    expect(await landIn(lab)).toEqual({ kind: 'nothing-to-land', commit });
  });

  it('replays the work on a main that has moved, with its authors, dates and messages', async () => {
    const { lab, work } = labWithWork();
    lab.write('b.txt', 'b\n', work);
    lab.gitAt(work, 'add', '--all');
    const message = 'Ünïcode subject\n\n  indented\n# not a comment\n\nSigned-off-by: x';
    const author = '--author=Bob <bob@example.com>';
    lab.gitAt(
      work,
      'commit',
      '--quiet',
      author,
      '--date=@1000000000 +0130',
      '--cleanup=verbatim',
      '-m',
      message,
    );
    lab.commit(work, 'c.txt', 'c\n');
    const main = lab.commit(lab.root, 'main.txt', 'main\n');
    const tip = lab.git('rev-parse', 'work');
    expect(await landIn(lab)).toMatchObject({
      kind: 'landed',
      from: main,
      subjects: ['Ünïcode subject', 'Write c.txt'],
    });
    expect(lab.git('log', '-1', '--format=%an %ae %ad%n%B', '--date=raw', 'main~1')).toBe(
      `Bob bob@example.com 1000000000 +0130\n${message}`,
    );
    expect(lab.git('rev-parse', 'main~2')).toBe(main);
    expect(lab.git('rev-parse', 'work')).toBe(tip);
    lab.git('fsck', '--strict');
  });

  it('keeps messages in other encodings as they are', async () => {
    const { lab, work } = labWithWork();
    writeFileSync(join(lab.folder, 'message'), Buffer.from('caf\u00e9', 'latin1'));
    const options = ['--quiet', '--allow-empty', `--file=${join(lab.folder, 'message')}`];
    lab.gitAt(work, '-c', 'i18n.commitEncoding=ISO-8859-1', 'commit', ...options);
    lab.commit(lab.root, 'main.txt', 'main\n');
    expect(await landIn(lab)).toMatchObject({ kind: 'landed', subjects: ['café'] });
  });

  it('gives the same commits for the same work on the same main', async () => {
    const results = [];
    for (let round = 0; round < 2; round++) {
      const { lab, work } = labWithWork();
      lab.commit(work, 'b.txt', 'b\n');
      lab.commit(lab.root, 'main.txt', 'main\n');
      results.push(await landIn(lab));
    }
    expect(results[0]).toMatchObject({ kind: 'landed' });
    const commits = results.map(result => ('commit' in result ? result.commit : undefined));
    expect(commits[0]).toBe(commits[1]);
  });

  it('finds nothing to do if main has the same changes already', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    const main = lab.commit(lab.root, 'b.txt', 'b\n');
    expect(await landIn(lab)).toEqual({ kind: 'nothing-to-land', commit: main });
  });

  it('says which files conflict, and leaves everything as it was', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'b.txt', 'b\n');
    const tip = lab.commit(work, 'a.txt', 'theirs\n');
    const main = lab.commit(lab.root, 'a.txt', 'ours\n');
    const before = lab.fingerprint();
    expect(await landIn(lab)).toEqual({
      kind: 'conflict',
      files: ['a.txt'],
      subject: 'Write a.txt',
      onto: main,
    });
    expect(lab.fingerprint()).toEqual(before);
    expect(lab.git('rev-parse', 'work')).toBe(tip);
  });

  it('loses nothing of what was decided in a merge', async () => {
    const { lab, work } = labWithWork();
    lab.commit(work, 'a.txt', 'theirs\n');
    lab.commit(lab.root, 'a.txt', 'ours\n');
    expect(() => lab.gitAt(work, 'merge', '--quiet', 'main')).toThrow();
    lab.write('a.txt', 'both\n', work);
    lab.gitAt(work, 'commit', '--quiet', '--all', '--message=Merge main');
    lab.commit(work, 'b.txt', 'b\n');
    lab.commit(lab.root, 'main.txt', 'main\n');
    expect(await landIn(lab)).toMatchObject({ kind: 'landed', subjects: ['Write a.txt'] });
    expect(lab.git('show', 'main:a.txt')).toBe('both');
    expect(lab.git('show', 'main:b.txt')).toBe('b');
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
  });

  it('takes a commit instead of a branch, also from a history of its own', async () => {
    const { lab, work } = labWithWork();
    lab.gitAt(work, 'checkout', '--quiet', '--orphan', 'other');
    lab.gitAt(work, 'rm', '-r', '--quiet', '--force', '.');
    const commit = lab.commit(work, 'b.txt', 'b\n');
    expect(await landIn(lab, { source: { commit } })).toMatchObject({
      kind: 'landed',
      subjects: ['Write b.txt'],
    });
    expect(lab.git('ls-tree', '--name-only', 'main')).toBe('a.txt\nb.txt');
  });
});

describe('a checkout of main', () => {
  it('keeps uncommitted changes of other files', async () => {
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
  ])('is in the way if a %s file would be overwritten', async (_, file, disturb) => {
    const { lab, work } = labWithWork();
    lab.commit(work, file, 'landed\n');
    disturb(lab);
    const before = lab.fingerprint();
    const verify = { path: lab.workspace('scratch'), run: () => expect.unreachable() };
    expect(await landIn(lab, { verify })).toMatchObject({
      kind: 'main-checkout-in-the-way',
      path: lab.root,
      files: [file],
      why: expect.stringContaining('would overwrite uncommitted changes'),
      hint: expect.stringContaining('stash push'),
    });
    expect(lab.fingerprint()).toEqual(before);
  });

  it('is in the way if an ignored file would be overwritten', async () => {
    const { lab, work } = labWithWork();
    writeFileSync(join(lab.root, '.git/info/exclude'), '.env\n');
    lab.write('.env', 'SECRET=1\n');
    lab.write('.env', 'landed\n', work);
    lab.gitAt(work, 'add', '--force', '.env');
    lab.gitAt(work, 'commit', '--quiet', '--message=Add .env');
    expect(await landIn(lab)).toMatchObject({ kind: 'main-checkout-in-the-way', path: lab.root });
    expect(readFileSync(join(lab.root, '.env'), 'utf8')).toBe('SECRET=1\n');
  });

  it('is in the way while it is rebased or merged', async () => {
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

  it.each(['--detach', 'feat/x'])('that is switched to %s is left alone', async to => {
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

describe('the branch to land on', () => {
  it('may be in a bare repository', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const bare = join(lab.folder, 'bare.git');
    lab.git('clone', '--quiet', '--bare', lab.root, bare);
    const repository = await openRepository({ cwd: bare, inheritEnv: plainEnvironment });
    expect(await landIn(lab, { repository })).toMatchObject({ kind: 'landed', commit, checkout: undefined });
    expect(lab.gitAt(bare, 'rev-parse', 'main')).toBe(commit);
  });

  it('may have another name, and must exist', async () => {
    const { lab, work } = labWithWork();
    lab.git('branch', '--move', 'main', 'master');
    lab.commit(work, 'b.txt', 'b\n');
    await expect(landIn(lab)).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: 'there is no branch main to land on',
      hint: 'the current branch is master: land on that, or make the other: git branch main',
    });
    expect(await landIn(lab, { onto: 'master' })).toMatchObject({ kind: 'landed' });
  });

  it('must have a commit', async () => {
    const { lab } = labWithWork();
    lab.git('update-ref', '-d', 'refs/heads/main');
    await expect(landIn(lab)).rejects.toMatchObject({
      code: 'CANNOT_LAND',
      message: 'main has no commit yet',
    });
  });

  it.each(['--all', '-x', 'a b', '../main', 'HEAD', 'no/such', ''])(
    'is not %j, and neither is the work',
    async name => {
      const { lab } = labWithWork();
      await expect(landIn(lab, { onto: name })).rejects.toMatchObject({ code: 'CANNOT_LAND' });
      await expect(landIn(lab, { source: { branch: name } })).rejects.toMatchObject({ code: 'CANNOT_LAND' });
    },
  );
});

describe('verifying', () => {
  it('sees exactly what would land, in a folder that is gone afterwards', async () => {
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

  it('that fails moves nothing, and gives the end of its output', async () => {
    const { lab, work } = labWithWork();
    const commit = lab.commit(work, 'b.txt', 'b\n');
    const before = lab.fingerprint();
    const output = `${'x'.repeat(100_000)}\n1 test failed\n`;
    const landing = await landIn(lab, {
      verify: { path: lab.workspace('scratch'), run: async () => ({ passed: false, output }) },
    });
    expect(landing).toMatchObject({
      kind: 'verify-failed',
      commit,
      output: expect.stringMatching(/1 test failed\n$/),
    });
    expect(lab.fingerprint()).toEqual(before);
  });

  it('begins again when main has moved in the meantime, and gives up after the bound', async () => {
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
      attempts: 2,
    });
    expect(rounds).toBe(2);
    expect(await landIn(lab, { verify: race(3), maxAttempts: 2 })).toMatchObject({ kind: 'landed' });
    expect(subjects(lab)).toEqual([
      'Begin',
      'Write race-1.txt',
      'Write race-2.txt',
      'Write race-3.txt',
      'Write b.txt',
    ]);
  });

  it('notices when main was set back in the meantime', async () => {
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

  it('is done for one landing at a time', async () => {
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

  it('clears away the folder that a crash left, but no folder of the user', async () => {
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

  it('can be given up, and leaves nothing behind', async () => {
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

describe('two processes', () => {
  const workersOn = (lab: Lab, rounds: number, names = ['a', 'b']) =>
    names.map(name => new Worker(compiled(), { task: 'land', root: lab.root, name, rounds }));

  it('land at once: all of it lands, in one line, and nothing is lost', async () => {
    const lab = new Lab();
    const workers = workersOn(lab, 6);
    await runTogether(workers);
    const landings = workers.flatMap(each => each.said<{ kind: string }>('landing'));
    expect(landings.map(each => each.kind)).toEqual(Array(12).fill('landed'));
    const committed = workers.flatMap(each => each.said<string>('committed'));
    expect(subjects(lab).toSorted()).toEqual(['Begin', ...committed].toSorted());
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(lab.git('branch', '--list')).toBe('* main');
  });

  it('recover when one is killed: main is whole, and its work is on main or on its branch', async () => {
    const lab = new Lab();
    for (const [round, lines] of [2, 3, 4, 5].entries()) {
      const [victim, other] = workersOn(lab, 2, [`victim${round}`, `other${round}`]);
      if (!victim || !other) throw new Error('two workers');
      await Promise.all([victim.printed(1), other.printed(1)]);
      victim.start();
      other.start();
      await victim.printed(lines);
      await victim.kill();
      await other.done();
      const log = lab.git('log', '--all', '--format=%s').split('\n');
      for (const subject of [...victim.said<string>('committed'), ...other.said<string>('committed')]) {
        expect(log).toContain(subject);
      }
    }
    lab.git('fsck', '--strict');
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(lab.git('rev-list', '--merges', 'main')).toBe('');
  });
});
