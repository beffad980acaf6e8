import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createProject, type TestProject, until } from '../e2e/run-inline.ts';
import { rounds, roundsFactor } from '../support/rounds.ts';

const realGit = execFileSync('which', ['git'], { encoding: 'utf8' }).trim();

interface GitProject extends TestProject {
  git(...args: readonly string[]): string;
  /** Lock files of git that are left. */
  locks(): readonly string[];
}

/** Repository with a workflow whose agent runs a script, and that lands its work on main. */
function landingProject(script: string, { workflow }: { readonly workflow?: string } = {}): GitProject {
  const project = createProject({
    git: true,
    files: {
      '.gitignore': '/.reprise/\n/bin/\n/.cache/\n/.config/\n/count\n/pid\n/*.mark\n',
      'README.md': 'hi\n',
      'reprise.yaml': `agents: { t: { kind: scripted, script: [ { run: ${JSON.stringify(script)} }, { say: ok } ] } }\n`,
      'w.yaml':
        workflow ??
        '{ name: w, steps: [ { id: a, agent: t, prompt: x }, { id: l, needs: [a], land: main } ] }\n',
    },
  });
  const git = (...args: readonly string[]) =>
    execFileSync(realGit, args, {
      cwd: project.root,
      encoding: 'utf8',
      stdio: 'pipe',
      env: {
        ...process.env,
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_AUTHOR_NAME: 'Ann',
        GIT_AUTHOR_EMAIL: 'ann@example.com',
        GIT_COMMITTER_NAME: 'Ann',
        GIT_COMMITTER_EMAIL: 'ann@example.com',
      },
    }).trimEnd();
  git('symbolic-ref', 'HEAD', 'refs/heads/main');
  git('add', '--all');
  git('commit', '--quiet', '--message=Begin');
  const locks = () =>
    execFileSync('find', ['.git', '-name', '*.lock'], { cwd: project.root, encoding: 'utf8' })
      .split('\n')
      .filter(name => name !== '');
  return { ...project, git, locks };
}

/** Puts a program named `git` first on the PATH. `real` is the path of the real one. */
function shim(project: GitProject, script: string): { readonly env: Record<string, string> } {
  const folder = join(project.root, 'bin');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'git'), `#!/bin/bash\nreal=${realGit}\n${script}\n`);
  chmodSync(join(folder, 'git'), 0o755);
  return { env: { PATH: `${folder}:${process.env['PATH']}` } };
}

/** Everything landed once, nothing is left, and the user's checkout is clean. */
function expectLanded(project: GitProject, subjects: number): void {
  expect(project.git('status', '--porcelain')).toBe('');
  expect(project.git('rev-list', '--count', 'main')).toBe(String(subjects));
  expect(project.locks()).toEqual([]);
  project.git('fsck', '--strict', '--no-dangling');
}

const manyFiles =
  'for i in $(seq 1 400); do echo $i > "g-$i.txt"; done; mkdir -p d; echo new > d/e; echo changed > README.md';

describe('settings of the user', () => {
  it('that squash every merge into main do not keep a landing from moving main', async () => {
    const project = landingProject('echo x > f');
    project.git('config', 'branch.main.mergeoptions', '--squash');
    const { code, stderr } = await project.run(['run', 'w.yaml']);
    expect([code, stderr]).toEqual([0, expect.stringContaining('landed 1 commit')]);
    expectLanded(project, 2);
  });

  it.each([
    ['core.safecrlf', 'true'],
    ['core.ignoreStat', 'true'],
    ['color.ui', 'always'],
    ['log.showSignature', 'true'],
    ['core.fsyncMethod', 'writeout-only'],
    ['i18n.commitEncoding', 'latin1'],
  ])('%s=%s changes nothing about a landing', async (key, value) => {
    const project = landingProject("printf 'x\\r\\ny\\n' > f; echo changed > README.md");
    project.git('config', key, value);
    project.git('config', 'core.autocrlf', 'input');
    const { code } = await project.run(['run', 'w.yaml']);
    expect(code).toBe(0);
    expect(project.git('show', '--name-only', '--format=', 'main')).toBe('README.md\nf');
  });
});

it('landing on a branch that is a symbolic ref moves the branch that it leads to', async () => {
  const project = landingProject('echo x > f', {
    workflow: '{ name: w, steps: [ { id: a, agent: t, prompt: x }, { id: l, needs: [a], land: master } ] }\n',
  });
  project.git('branch', 'trunk');
  project.git('symbolic-ref', 'refs/heads/master', 'refs/heads/trunk');
  expect((await project.run(['run', 'w.yaml'])).code).toBe(0);
  expect(project.git('symbolic-ref', 'refs/heads/master')).toBe('refs/heads/trunk');
  expect(project.git('show', 'trunk:f')).toBe('x');
  // The same, while the branch is checked out that the symbolic ref leads to.
  project.git('switch', '--quiet', 'trunk');
  const again = project.read('reprise.yaml').replace('echo x > f', 'echo y > g');
  project.write({ 'reprise.yaml': again });
  project.git('commit', '--quiet', '--all', '--message=Other work');
  expect((await project.run(['run', 'w.yaml'])).code).toBe(0);
  expect(project.git('symbolic-ref', 'refs/heads/master')).toBe('refs/heads/trunk');
  expect(project.git('show', 'trunk:g')).toBe('y');
  expect(project.git('status', '--porcelain')).toBe('');
});

it('a commit of a submodule that exists only in the workspace is refused', async () => {
  const source = landingProject('true');
  const project = landingProject('true', {
    workflow: `{ name: w, steps: [ { id: a, workspace: worktree, run: 'git -c protocol.file.allow=always submodule --quiet update --init; cd sub; git checkout -q -b y; echo p > p; git add p; git -c user.name=A -c user.email=a@b commit -qm p' }, { id: l, needs: [a], land: main } ] }\n`,
  });
  project.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', source.root, 'sub');
  project.git('commit', '--quiet', '--message=Submodule');
  const { code, stderr } = await project.run(['run', 'w.yaml']);
  expect(code).toBe(6);
  expect(stderr).toMatch(/commit [0-9a-f]{10} of the submodule sub exists only in the workspace/);
  expect(stderr).toContain('push it, then land again: git -C ');
  expect(project.git('log', '-1', '--format=%s')).toBe('Submodule');
});

describe('a run that is killed while its checkout is updated', () => {
  it('leaves git to finish, however long it takes, and lands once', async () => {
    const project = landingProject('echo 1 > a.bin; echo 2 > b.bin; echo changed > README.md');
    project.git(
      'config',
      'filter.slow.smudge',
      `sh -c 'touch ${project.root}/slow.mark; sleep 3; echo trouble >&2; cat'`,
    );
    project.git('config', 'filter.slow.clean', 'cat');
    project.write({ '.git/info/attributes': '*.bin filter=slow\n' });
    const run = project.start(['run', 'w.yaml']);
    await until(() => existsSync(join(project.root, 'slow.mark')));
    run.kill('SIGKILL');
    await run.ended;
    const { code, stderr } = await project.run(['resume']);
    expect([code, stderr]).toEqual([0, expect.stringContaining('landed 1 commit')]);
    expectLanded(project, 2);
  });

  it.each(['a.bin', 'b.bin', 'c.bin'])(
    'together with git, at the file %s, undoes the update and lands once',
    async file => {
      const script =
        'for f in a b c; do seq 1 3000 > $f.bin; done; echo changed > README.md; rm -r old; echo 1 > old';
      const project = landingProject(script);
      project.write({ 'old/x.txt': 'x\n', 'mine.txt': 'a\n' });
      project.git('add', '--all');
      project.git('commit', '--quiet', '--message=Old files');
      const kill = `head -c 1000; if [ %f = ${file} ] && [ -e ${project.root}/pid ]; then kill -9 $(cat ${project.root}/pid); else cat; fi`;
      project.git('config', 'filter.deadly.smudge', `bash -c '${kill}'`);
      project.git('config', 'filter.deadly.clean', 'cat');
      project.write({ '.git/info/attributes': '*.bin filter=deadly\n' });
      const options = shim(
        project,
        `case "$*" in *"merge --ff-only"*) echo $PPID $$ > ${project.root}/pid;; esac; exec $real "$@"`,
      );
      project.write({ 'mine.txt': 'my edit\n', 'my-new.txt': 'new\n' });
      const run = await project.run(['run', 'w.yaml'], options);
      expect(run.code).toBe(null);
      execFileSync('rm', [join(project.root, 'pid')]);
      expect(project.locks()).not.toEqual([]);
      const { code, stderr } = await project.run(['resume']);
      expect([code, stderr]).toEqual([0, expect.stringContaining('landed 1 commit')]);
      expect(project.git('status', '--porcelain')).toBe(' M mine.txt\n?? my-new.txt');
      expect(project.read('mine.txt')).toBe('my edit\n');
      expect(project.locks()).toEqual([]);
      expect(project.git('rev-list', '--count', 'main')).toBe('3');
    },
  );

  it('after the index was written and before main moved, undoes the update and keeps later edits', async () => {
    const project = landingProject('echo changed > README.md; echo 1 > new.txt; echo 2 > newer.txt');
    const half = `$real read-tree -m -u HEAD "\${@: -1}"; touch .git/HEAD.lock .git/refs/heads/main.lock; kill -9 $PPID`;
    const options = shim(project, `case "$*" in *"merge --ff-only"*) ${half};; *) exec $real "$@";; esac`);
    expect((await project.run(['run', 'w.yaml'], options)).code).toBe(null);
    expect(project.git('diff', '--cached', '--name-only')).toBe('README.md\nnew.txt\nnewer.txt');
    project.write({ 'newer.txt': 'mine\n' });
    const blocked = await project.run(['resume']);
    expect(blocked.code).toBe(6);
    expect(blocked.stderr).toContain('landing would overwrite uncommitted changes there: newer.txt');
    expect(project.git('status', '--porcelain')).toBe('?? newer.txt');
    expect(project.read('newer.txt')).toBe('mine\n');
    execFileSync('rm', [join(project.root, 'newer.txt')]);
    expect((await project.run(['resume'])).code).toBe(0);
    expectLanded(project, 2);
  });

  it('keeps a lock of another git command, and says how old it is and how to remove it', async () => {
    const project = landingProject('echo changed > README.md');
    const held = shim(
      project,
      'case "$*" in *"merge --ff-only"*) touch .git/index.lock;; esac; exec $real "$@"',
    );
    const { code, stderr } = await project.run(['run', 'w.yaml'], held);
    expect(code).toBe(6);
    expect(stderr).toMatch(
      /another git command holds the lock \S+\/\.git\/index\.lock, .*; the lock is \d+ s old/,
    );
    expect(stderr).toContain(`remove the lock: rm ${project.root}/.git/index.lock`);
    expect(project.locks()).toEqual(['.git/index.lock']);
    execFileSync('rm', [join(project.root, '.git/index.lock')]);
    expect((await project.run(['resume'])).code).toBe(0);
    expectLanded(project, 2);
  });
});

it('an empty range is nothing to land, also after a kill', async () => {
  const project = landingProject('true', {
    workflow:
      '{ name: w, steps: [ { id: a, agent: t, prompt: x }, { id: l, needs: [a], land: main, verify: "true" } ] }\n',
  });
  const clean = await project.run(['run', 'w.yaml']);
  expect(clean.stdout).toContain('nothing-to-land');
  const options = shim(
    project,
    'case "$*" in *"rev-list --reverse --topo-order"*) kill -9 $PPID;; *) exec $real "$@";; esac',
  );
  expect((await project.run(['run', 'w.yaml'], options)).code).toBe(null);
  const resumed = await project.run(['resume']);
  expect(project.stable(resumed.stdout)).toBe(project.stable(clean.stdout));
});

it('a landing that was interrupted after main moved is reported like one that was not', async () => {
  const project = landingProject('echo x > f');
  const options = shim(
    project,
    'case "$*" in *"merge --ff-only"*) $real "$@"; kill -9 $PPID;; *) exec $real "$@";; esac',
  );
  expect((await project.run(['run', 'w.yaml'], options)).code).toBe(null);
  expect(project.git('show', 'main:f')).toBe('x');
  const { code, stderr } = await project.run(['resume']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('landed 1 commit')]);
  expectLanded(project, 2);
});

const every = roundsFactor >= 3 ? 1 : 4;
const leastCommands = 16;

it(`resume works after a crash of Reprise and git at any of its git commands (one of ${every})`, async () => {
  let last = 0;
  for (let point = 1 + (rounds(1) % every); ; point += every) {
    const project = landingProject(manyFiles);
    const options = shim(
      project,
      [
        `n=$(( $(cat ${project.root}/count 2>/dev/null || echo 0) + 1 )); echo $n > ${project.root}/count`,
        `[ $n -ne ${point} ] && exec $real "$@"`,
        `echo "$*" > ${project.root}/point.mark`,
        `$real "$@" & g=$!; sleep 0.0${point % 4}; kill -9 $PPID; kill -9 $g`,
      ].join('\n'),
    );
    const { code } = await project.run(['run', 'w.yaml'], options);
    if (code === 0) break;
    last = point;
    const where = `command ${point}: ${readFileSync(join(project.root, 'point.mark'), 'utf8').slice(0, 300)}`;
    expect(code, where).toBe(null);
    const first = await project.run(['resume']);
    // The crash came before the run began.
    const resumed = first.stderr.includes('RUN_NOT_FOUND') ? await project.run(['run', 'w.yaml']) : first;
    expect(resumed.code, `${where}\n${resumed.stderr}`).toBe(0);
    expect([where, project.git('status', '--porcelain'), project.locks()]).toEqual([where, '', []]);
    expect(project.git('rev-list', '--count', 'main'), where).toBe('2');
  }
  expect(last).toBeGreaterThan(leastCommands);
});
