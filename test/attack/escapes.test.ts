import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CaptureProject, captureProject } from '../e2e/capture-project.ts';
import { parseLines } from '../e2e/run-inline.ts';

const limit = 120_000;

function projectOf(script: string, more = ''): CaptureProject {
  return captureProject({
    files: {
      'reprise.yaml': `agents:\n  t:\n    kind: scripted\n${more}    script:\n      - run: |\n${script
        .split('\n')
        .map(line => `          ${line}\n`)
        .join('')}      - say: ok\n`,
      'w.yaml': '{ name: w, steps: [ { id: a, agent: t, prompt: x } ] }',
      'README.md': 'hello\n',
    },
  });
}

interface Line {
  readonly type: string;
  readonly status?: string;
  readonly error?: { readonly code: string; readonly message: string };
}

async function endOf(project: CaptureProject): Promise<string> {
  const { stdout, stderr } = await project.cli(['run', 'w.yaml', '--json']);
  const last = parseLines<Line>(stdout).at(-1);
  return last?.error ? `${last.error.code}: ${last.error.message}` : (last?.status ?? stderr);
}

const work = 'echo mine > mine.txt\ngit add mine.txt\ngit -c user.name=x -c user.email=x commit -qm mine';

describe('an agent that leaves its workspace', () => {
  it.each([
    {
      what: 'edits a file of the main checkout by its path',
      script: 'echo changed >> "$MAIN/README.md"',
      named: 'README.md in the main checkout',
    },
    {
      what: 'creates a file in the main checkout by a relative path',
      script: 'echo new > ../../../../../new.txt',
      named: 'new.txt in the main checkout',
    },
    {
      what: 'commits on main',
      script: `git checkout -q --ignore-other-worktrees main\n${work}\necho more > more.txt`,
      named: 'branch main was moved to a commit of this session',
    },
    {
      what: 'merges its work into main',
      script: `${work}\ngit update-ref refs/heads/main HEAD`,
      named: 'branch main was moved to a commit of this session',
    },
    {
      what: 'pushes to a remote',
      script: `${work}\ngit push -q origin HEAD:main`,
      named: 'remote branch origin/main was moved to a commit of this session',
    },
    {
      what: 'changes the configuration',
      script: 'git config core.hooksPath hooks',
      named: 'core.hookspath in the git configuration',
    },
    { what: 'creates a tag', script: `${work}\ngit tag v1`, named: 'tag v1 was created' },
    {
      what: 'creates a worktree',
      script: 'git worktree add -q ../elsewhere -b elsewhere',
      named: 'elsewhere was created',
    },
  ])('fails if it $what', { timeout: limit }, async ({ script, named }) => {
    const project = projectOf(script.replaceAll('$MAIN', '@root@'));
    writeFileSync(
      join(project.root, 'reprise.yaml'),
      project.git('show', 'HEAD:reprise.yaml').replaceAll('@root@', project.root),
    );
    project.git('commit', '--quiet', '--all', '--allow-empty', '--message', 'Settings');
    const origin = join(project.root, '.git', 'origin.git');
    execFileSync('git', ['clone', '--quiet', '--bare', project.root, origin]);
    project.git('remote', 'add', 'origin', origin);
    project.git('fetch', '--quiet');
    const end = await endOf(project);
    expect(end).toContain('WORKSPACE_ESCAPED');
    expect(end).toContain(named);
    // Reprise saves the work on the branch of the workspace, and never on the branch that the agent checked out.
    expect(project.git('log', '--format=%s', 'main', '--', 'more.txt')).toBe('');
    if (script.startsWith('echo mine'))
      expect(project.git('log', '--all', '--format=%s', '--', 'mine.txt')).toContain('mine');
  });

  it('succeeds with `escapes: allow`', { timeout: limit }, async () => {
    const project = projectOf('git config core.hooksPath hooks', '    escapes: allow\n');
    expect(await endOf(project)).toBe('completed');
  });

  it('fails again when its run is captured and replayed', { timeout: limit }, async () => {
    const project = projectOf('git config core.hooksPath hooks');
    const ended = await project.cli(['run', 'w.yaml', '--json']);
    project.git('config', '--unset', 'core.hooksPath');
    expect(ended.code).toBe(1);
    const captured = await project.cli(['capture', project.runOf(ended), 'escape']);
    expect(captured, captured.stderr).toMatchObject({ code: 0 });
    expect(await project.cli(['test', 'escape'])).toMatchObject({ code: 0 });
  });
});

describe('an agent that stays in its workspace', () => {
  it('succeeds while a person edits, commits, tags, configures and fetches', { timeout: limit }, async () => {
    const project = projectOf(`${work}\ntouch ../started\nwhile [ ! -e ../done ]; do sleep 0.05; done`);
    const { root, git } = project;
    const origin = join(root, '.git', 'origin.git');
    execFileSync('git', ['clone', '--quiet', '--bare', root, origin]);
    git('remote', 'add', 'origin', origin);
    const running = project.begin(['run', 'w.yaml', '--json']);
    const folder = () =>
      git('worktree', 'list', '--porcelain')
        .split('\n')
        .filter(line => line.startsWith('worktree '))
        .at(1)
        ?.slice(9) ?? '';
    while (!folder() || !existsSync(join(folder(), '..', 'started'))) await new Promise(setImmediate);
    writeFileSync(join(root, 'README.md'), 'edited by a person\n');
    writeFileSync(join(root, 'new.txt'), 'by a person\n');
    git('add', 'new.txt');
    git('commit', '--quiet', '--message', 'By a person', 'new.txt');
    git('tag', 'by-a-person');
    git('config', 'core.editor', 'ed');
    git('fetch', '--quiet');
    writeFileSync(join(folder(), '..', 'done'), '');
    const { stdout, stderr } = await running.ended;
    expect(stdout).toContain('"status":"completed"');
    expect(stderr).toContain('changed during the session, but not attributable to it: branch main was moved');
    expect(stderr).toContain('README.md in the main checkout');
    expect(stderr).toContain('core.editor in the git configuration');
  });

  it('succeeds on a branch of its own, with a stash and after a merge of main', {
    timeout: limit,
  }, async () => {
    const project = projectOf(
      `git checkout -q -b mine\n${work}\necho y > mine.txt\ngit -c user.name=x -c user.email=x stash -q\ngit merge -q main`,
    );
    expect(await endOf(project)).toBe('completed');
  });

  it('succeeds while its siblings land', { timeout: limit }, async () => {
    const project = captureProject({
      files: {
        'reprise.yaml': `{ workers: { agent: t }, agents: { t: { kind: scripted, script: [ { run: 'echo x > "f-$REPRISE_TASK"; git log main >/dev/null' }, { say: <next>land</next> } ] } } }`,
        ...Object.fromEntries([1, 2, 3, 4].map(n => [`issues/t${n}.md`, `# ${n}\n`])),
      },
    });
    const { code, stdout, stderr } = await project.cli(['worker', '--until-idle', '--workers', '2']);
    expect(code, stdout + stderr).toBe(0);
    expect(stderr).not.toContain('not attributable');
    expect(project.git('ls-files')).toContain('f-t4');
  });
});
