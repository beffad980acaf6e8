import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { createProject, runInline, type TestProject } from './run-inline.ts';

const createdFiles = [
  'reprise.yaml',
  '.reprise/agents/dispatch.md',
  '.reprise/agents/implement.md',
  '.reprise/agents/review.md',
  '.reprise/workflows/example.yaml',
  'issues/example.md',
];

const git = ({ root }: TestProject, ...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=ana', '-c', 'user.email=ana@example.com', ...args], {
    cwd: root,
    encoding: 'utf8',
    stdio: 'pipe',
  });

/** Repository with one commit. */
function repository(): TestProject {
  const project = createProject({ git: true, files: { 'a.txt': 'one\n', 'sub/folder/b.txt': 'two\n' } });
  git(project, 'add', '--all');
  git(project, 'commit', '--quiet', '--message', 'Initial commit');
  return project;
}

describe('reprise init', () => {
  it('sets up a repository and lists the next steps', async () => {
    const project = repository();
    const { code, stdout, stderr } = await project.run(['init']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatchInlineSnapshot(`
      "created reprise.yaml
      created .reprise/agents/dispatch.md
      created .reprise/agents/implement.md
      created .reprise/agents/review.md
      created .reprise/workflows/example.yaml
      created issues/example.md
      git ignores .reprise/workspaces/ through .git/info/exclude; .gitignore was not changed

      Next:
        1. set your test command in reprise.yaml: \`verify\` under \`workers\`
        2. write a task: edit issues/example.md and set \`state: ready\`
        3. commit the files: git add reprise.yaml .reprise issues && git commit -m "Set up Reprise"
        4. start a worker: reprise worker
      "
    `);
    expect(createdFiles.filter(file => !project.has(file))).toEqual([]);
    expect(project.has('.gitignore')).toBe(false);
    expect(project.read('.git/info/exclude')).toContain('.reprise/workspaces/\n');
  });

  it('creates valid files and a workflow that runs', async () => {
    const project = repository();
    await project.run(['init']);
    expect(await project.run(['validate'])).toEqual({
      code: 0,
      stdout: 'ok .reprise/workflows/example.yaml (example)\nok reprise.yaml\n',
      stderr: '',
    });
    const branch = git(project, 'symbolic-ref', '--short', 'HEAD').trim();
    const ran = await project.run(['run', 'example', '--input', 'greeting=Good morning']);
    expect(JSON.parse(ran.stdout)).toEqual({ summary: `Good morning, ${branch} has 2 files.` });
    expect(git(project, 'status', '--porcelain', '-uall').trim().split('\n').length).toBe(
      createdFiles.length,
    );
  });

  it('skips files that exist already', async () => {
    const project = repository();
    await project.run(['init']);
    git(project, 'add', '--all');
    git(project, 'commit', '--quiet', '--message', 'Set up Reprise');
    const { code, stdout } = await project.run(['init']);
    expect(code).toBe(0);
    expect(stdout).toMatchInlineSnapshot(`
      "skipped reprise.yaml: it exists already
      skipped .reprise/agents/dispatch.md: it exists already
      skipped .reprise/agents/implement.md: it exists already
      skipped .reprise/agents/review.md: it exists already
      skipped .reprise/workflows/example.yaml: it exists already
      skipped issues/example.md: it exists already
      nothing to create
      git ignores .reprise/workspaces/ through .git/info/exclude; .gitignore was not changed

      Next:
        1. write a task: edit issues/example.md and set \`state: ready\`
        2. start a worker: reprise worker
      "
    `);
    expect(git(project, 'status', '--porcelain')).toBe('');
  });

  it('keeps changed files unless the user confirms or passes --yes', async () => {
    const project = repository();
    await project.run(['init']);
    const original = project.read('reprise.yaml');
    const changed = { 'reprise.yaml': 'record: false\n', '.reprise/agents/review.md': 'mine\n' };
    project.write(changed);
    const refused = await project.run(['init'], { stdin: 'n\n' });
    expect(refused).toMatchObject({
      code: 0,
      stderr: 'overwrite reprise.yaml? [y/N] n\noverwrite .reprise/agents/review.md? [y/N] \n',
    });
    expect(refused.stdout).toContain('kept reprise.yaml: it differs\n');
    expect(project.read('reprise.yaml')).toBe(changed['reprise.yaml']);

    const allowed = await project.run(['init'], { stdin: 'y' });
    expect(allowed.stdout).toContain('overwrote reprise.yaml\n');
    expect(allowed.stdout).toContain('kept .reprise/agents/review.md: it differs\n');
    expect(project.read('reprise.yaml')).toBe(original);

    project.write(changed);
    const forced = await project.run(['init', '--yes', '--agent', 'codex']);
    expect(forced).toMatchObject({ code: 0, stderr: '' });
    expect(forced.stdout).toContain('overwrote .reprise/agents/review.md\n');
    expect(project.read('reprise.yaml')).toBe(original);
    expect(project.read('.reprise/agents/review.md')).toMatch(/^---\nkind: codex\n/);
    expect((await project.run(['validate'])).code).toBe(0);
  });

  it('works before the first commit, and says that workers need one', async () => {
    const { code, stdout } = await runInline({ git: true, args: ['init'] });
    expect(code).toBe(0);
    expect(stdout).toContain(
      '  3. make the first commit, which workers start from: git add reprise.yaml .reprise issues && git commit -m "Set up Reprise"\n',
    );
  });

  it('creates nothing outside a repository, and says how to create one', async () => {
    const { code, stdout, stderr, project } = await runInline({ args: ['init'] });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(project.stable(stderr)).toMatchInlineSnapshot(`
      "error[NOT_A_REPOSITORY]: <root> is not in a git repository
        hint: create one first: git init -b main && reprise init
      "
    `);
    expect(project.has('reprise.yaml')).toBe(false);
  });

  it('writes to the root of the repository from a subfolder', async () => {
    const project = repository();
    const { code, stdout } = await project.run(['init'], { cwd: 'sub/folder' });
    expect(code).toBe(0);
    expect(stdout).toContain('in the root of the repository, ../..:\ncreated ../../reprise.yaml\n');
    expect(stdout).toContain('git add ../../reprise.yaml ../../.reprise ../../issues && git commit');
    expect(project.has('reprise.yaml')).toBe(true);
    expect(project.has('sub/folder/reprise.yaml')).toBe(false);
  });

  it('prints JSON and asks nothing with --json', async () => {
    const project = repository();
    project.write({ '.reprise/agents/review.md': 'mine\n' });
    const { code, stdout, stderr } = await project.run(['init', '--json'], { stdin: 'y\n' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { root, files, ...rest } = JSON.parse(stdout);
    expect(root).toBe(project.root);
    expect(files).toEqual(
      createdFiles.map(path =>
        path.endsWith('review.md')
          ? {
              path,
              outcome: 'kept',
              why: 'it differs; to overwrite all files that differ: reprise init --yes',
            }
          : { path, outcome: 'made' },
      ),
    );
    expect(rest).toEqual({
      dry_run: false,
      excluded_by: '.git/info/exclude',
      ignored: [],
      notes: [],
      next: [
        expect.stringContaining('verify'),
        expect.any(String),
        expect.any(String),
        'start a worker: reprise worker',
      ],
    });
  });

  it('only lists what it would do with --dry-run', async () => {
    const project = repository();
    project.write({ 'reprise.yaml': '' });
    const { code, stdout, stderr } = await project.run(['init', '--dry-run'], { stdin: 'y\n' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatchInlineSnapshot(`
      "would ask about reprise.yaml: it exists and differs
      would create .reprise/agents/dispatch.md
      would create .reprise/agents/implement.md
      would create .reprise/agents/review.md
      would create .reprise/workflows/example.yaml
      would create issues/example.md
      nothing was changed; to create the files: reprise init
      "
    `);
    expect(git(project, 'status', '--porcelain', '-uall')).toBe('?? reprise.yaml\n');
    expect(project.read('.git/info/exclude')).not.toContain('.reprise');
  });

  it('lists the supported agents if the name is unknown', async () => {
    const { code, stderr } = await runInline({ git: true, args: ['init', '--agent', 'cloude'] });
    expect(code).toBe(2);
    expect(stderr).toContain('Allowed choices are claude, codex, gemini, opencode.');
  });
});
