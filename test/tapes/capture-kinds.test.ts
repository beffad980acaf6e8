import { expect, test } from 'vitest';
import { captureAndPlay, captureProject } from '../e2e/capture-project.ts';
import { createProject, defineModule, until } from '../e2e/run-inline.ts';

test('captures a run of a project without a repository whose state lives elsewhere', async () => {
  const project = createProject({
    files: {
      '.reprise/workflows/two.yaml': `
name: two
steps:
  - { id: first, run: 'echo "found=yes" >> "$REPRISE_OUTPUT"; echo first' }
  - { id: second, needs: [first], run: 'test "$FOUND" = yes', env: { FOUND: "\${{ steps.first.outputs.found }}" } }
`,
    },
  });
  const elsewhere = createProject();
  const state = ['--state-dir', `${elsewhere.root}/state`];
  const run = await project.run(['run', 'two', '--json', ...state]);
  expect(run).toMatchObject({ code: 0 });
  const runId = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '').runId;
  expect(await project.run(['capture', runId, 'two', ...state])).toMatchObject({ code: 0 });
  expect(await project.run(['test', 'two'])).toMatchObject({ code: 0, stderr: '' });
  expect(project.read('cases/two/two.toml')).not.toContain('[base]');
});

test('captures a run that was killed during a script and resumed', async () => {
  const project = captureProject({
    files: {
      'a.txt': 'one\n',
      '.reprise/workflows/slow.yaml': `
name: slow
steps:
  - { id: first, run: echo first }
  - { id: second, needs: [first], run: 'echo begun; agent-tool' }
  - { id: third, needs: [second], run: echo third }
`,
    },
    tool: 'touch .git/at-work; test -e .git/go-on || sleep 60',
  });
  const running = project.begin(['run', 'slow']);
  await until(() => project.has('.git/at-work'));
  running.kill('SIGKILL');
  await running.ended;
  project.write({ '.git/go-on': '' });
  const resumed = await project.cli(['resume', '--json']);
  expect(resumed).toMatchObject({ code: 0 });
  await captureAndPlay(project, project.runOf(resumed), 'script');
});

test('captures a module with a function that is retried, and a nested workflow', async () => {
  const project = captureProject({
    files: {
      'package.json': '{ "type": "module" }',
      'flows.mjs': `
import { step, workflow } from '${defineModule}';
let tries = 0;
const count = step('count', {
  retry: { attempts: 3, backoff: '1ms' },
  run: () => {
    if (++tries < 2) throw new Error('not yet');
    return { tries };
  },
});
export const counting = workflow('counting', { steps: [count] });
`,
      '.reprise/workflows/outer.yaml': `
name: outer
steps:
  - { id: inner, uses: ./inner.yaml }
  - { id: after, needs: [inner], run: echo after }
`,
      '.reprise/workflows/inner.yaml': 'name: inner\nsteps: [{ id: say, run: echo inner }]\n',
    },
  });
  const counted = await project.cli(['run', 'flows.mjs#counting', '--json']);
  expect(counted).toMatchObject({ code: 0 });
  await captureAndPlay(project, project.runOf(counted), 'counted');
  const outer = await project.cli(['run', 'outer', '--json']);
  expect(outer).toMatchObject({ code: 0 });
  await captureAndPlay(project, project.runOf(outer), 'outer');
});

const three = {
  'README.md': 'Helo, world!\n',
  '.gitignore': 'installed\n',
  'reprise.yaml': `
worktrees: { setup: ['touch installed'] }
agents:
  fixer:
    kind: scripted
    script:
      - append: { path: half.txt, content: "half\\n" }
      - commit: Half of it
      - run: agent-tool README.md
`,
  '.reprise/workflows/three.yaml': `
name: three
steps:
  - { id: fix, agent: fixer, prompt: Fix it., concurrency: 3, checks: ['test -e installed'] }
  - { id: pack, needs: [fix], run: 'ls > list.txt; echo "n=1" >> "$REPRISE_OUTPUT"', workspace: worktree }
`,
};

const waitOnce =
  'common=$(git rev-parse --path-format=absolute --git-common-dir); echo "$REPRISE_WORKER" >> "$common/at-work"; test -e "$common/go-on" || sleep 60; sed -i "s/Helo/Hello/" "$@"';

test('captures a fan-out that was killed during three sessions and resumed', async () => {
  const project = captureProject({ files: three, tool: waitOnce });
  const running = project.begin(['run', 'three']);
  await until(() => project.read('.git/at-work').split('\n').length > 3);
  running.kill('SIGKILL');
  await running.ended;
  project.write({ '.git/go-on': '' });
  const resumed = await project.cli(['resume', '--json']);
  expect(resumed).toMatchObject({ code: 0 });
  await captureAndPlay(project, project.runOf(resumed), 'three');
});

test('captures a run that another process cancelled', async () => {
  const project = captureProject({ files: three, tool: waitOnce });
  const running = project.begin(['run', 'three', '--json']);
  await until(() => project.read('.git/at-work').split('\n').length > 3);
  const { runId } = JSON.parse(running.stdout.split('\n')[0] ?? '');
  expect(await project.cli(['cancel', runId, '--reason', 'changed my mind'])).toMatchObject({ code: 0 });
  expect(await running.ended).toMatchObject({ code: 1 });
  await captureAndPlay(project, runId, 'cancelled');
});
