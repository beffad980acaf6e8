import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type CaptureProject, captureAndPlay, captureProject } from '../e2e/capture-project.ts';
import { parseLines, until } from '../e2e/run-inline.ts';
import { stateOf } from '../support/state.ts';

const implement = `---
kind: scripted
script:
  - say: Working on it.
  - run: agent-tool
  - say: "Done.\\n<next>land</next>"
---
You do tasks.
`;

/** `greet` waits until `wave` has started, and `wave` waits until `greet` has landed, so that `wave` conflicts. */
const tool = `
if grep -q '<<<<<<<' greeting.txt; then echo 'Hello, everybody' > greeting.txt; exit; fi
case "$REPRISE_TASK" in
  greet) until [ -e "$(git rev-parse --git-common-dir)/begun" ]; do sleep 0.05; done; echo 'Hello' > greeting.txt ;;
  wave) : > "$(git rev-parse --git-common-dir)/begun"; until [ "$(git rev-list --count main)" = 2 ]; do sleep 0.05; done; echo 'Hi' > greeting.txt ;;
  *) echo "$REPRISE_TASK" > "$REPRISE_TASK.txt" ;;
esac
`;

const workerProject = (files: Readonly<Record<string, string>>, agentTool = tool): CaptureProject =>
  captureProject({
    tool: agentTool,
    files: { 'greeting.txt': 'Helo\n', '.reprise/agents/implement.md': implement, ...files },
  });

/** Returns the id of the run that worked on a task, from the output of a worker. */
function runOf(stdout: string, task: string): string {
  const events = parseLines<{ type: string; runId?: string; data?: { args?: { task?: string } } }>(stdout);
  const taken = events.find(({ type, data }) => type === 'transition.taken' && data?.args?.task === task);
  return taken?.runId ?? '';
}

test('captures one of several tasks of a worker, which replays without its agent', async () => {
  const project = workerProject({
    'reprise.yaml': 'workers: { verify: "agent-tool --check" }\n',
    'issues/first.md': '---\npriority: P0\n---\nDo the first\n',
    'issues/second.md': '---\npriority: P1\n---\nDo the second\n',
    'issues/third.md': 'Do the third\n',
  });
  const worked = await project.cli(['worker', '--until-idle', '--json']);
  expect(worked).toMatchObject({ code: 0 });
  const text = await captureAndPlay(project, runOf(worked.stdout, 'second'), 'worker/second');
  expect(text).toContain('command = "worker"');
  expect(text).toContain('args = ["--once", "--name", "worker-1", "--branch", "main"]');
  const snapshot = project.read('cases/worker/second/second.snap');
  expect(snapshot).toContain('picked up second');
  expect(snapshot).not.toContain('third');
});

test('captures a conflict with work that another worker landed first, and replays it without that worker', async () => {
  const project = workerProject({
    'issues/greet.md': '---\npriority: P1\n---\nGreet\n',
    'issues/wave.md': 'Wave\n',
  });
  const worked = await project.cli(['worker', '--until-idle', '--workers', '2', '--json']);
  expect(worked).toMatchObject({ code: 0 });
  expect(project.git('show', 'main:greeting.txt')).toBe('Hello, everybody');
  const text = await captureAndPlay(project, runOf(worked.stdout, 'wave'), 'conflict');
  expect(text).toContain('[[claims]]\ntask = "greet"\nstate = "held"');
  expect(text).toMatch(/label = "land\.prepare"\naction = \{ move_main = "[0-9a-f]{40}" \}/);
  const snapshot = project.read('cases/conflict/conflict.snap');
  expect(snapshot).toContain('greeting.txt');
  expect(snapshot).toContain('picked up wave');
  expect(snapshot).not.toContain('picked up greet');
  // A replay uses the project as it is now, so a changed prompt makes the case stale.
  project.write({ '.reprise/agents/implement.md': implement.replace('You do', 'You never do') });
  const changed = await project.cli(['test', 'conflict']);
  expect(changed.code).toBe(5);
  expect(changed.stdout).toContain('stale');
});

test('captures a branch that moved during verification, with `land: main` and with `land: branch`', async () => {
  const moves =
    'if [ ! -e "$(git rev-parse --git-common-dir)/moved" ]; then : > "$(git rev-parse --git-common-dir)/moved"; git -C "$(git rev-parse --path-format=absolute --git-common-dir)/.." commit --quiet --allow-empty -m Theirs; fi';
  for (const [land, label] of [
    ['main', 'land.move'],
    ['branch', 'land.confirm'],
  ]) {
    const project = workerProject(
      {
        'reprise.yaml': `workers: { land: ${land}, verify: "agent-tool --check" }\n`,
        'issues/one.md': 'One\n',
      },
      `case "$1" in --check) ${moves} ;; *) echo one > one.txt ;; esac`,
    );
    const worked = await project.cli(['worker', '--until-idle', '--json']);
    expect(worked).toMatchObject({ code: 0 });
    const text = await captureAndPlay(project, runOf(worked.stdout, 'one'), 'lost');
    expect(text).toMatch(new RegExp(`label = "${label}"\naction = { move_main = "[0-9a-f]{40}" }`));
  }
});

test('captures a failed task and an interrupted one', async () => {
  const project = workerProject(
    { 'issues/a.md': '---\npriority: P0\n---\nA\n', 'issues/b.md': 'B\n' },
    'case "$REPRISE_TASK" in a) exit 3;; b) : > "$(git rev-parse --git-common-dir)/begun"; sleep 60;; esac',
  );
  const failed = await project.cli(['worker', '--once', '--json']);
  expect(failed.code).toBe(1);
  await captureAndPlay(project, runOf(failed.stdout, 'a'), 'failed');
  expect(project.read('cases/failed/failed.snap')).toContain('exited with code 3');
  const stopped = project.begin(['worker', '--json']);
  await until(() => project.has('.git/begun'));
  stopped.kill('SIGINT');
  const { stdout } = await stopped.ended;
  const text = await captureAndPlay(project, runOf(stdout, 'b'), 'stopped');
  expect(text).toContain('action = { signal = "SIGINT" }');
  expect(text).toContain('expect = { exit = 130 }');
});

test('captures tasks from a list command and the decision of a dispatching agent, and replays both without them', async () => {
  const project = workerProject(
    {
      'reprise.yaml': 'tasks: { command: agent-tool --list }\nworkers: { dispatch: agent }\n',
      '.reprise/agents/dispatch.md':
        '---\nkind: scripted\nscript:\n  - say: "<next>\\nagent: implement\\ntask: two\\nwhy: it is short\\n</next>"\n---\n',
    },
    `case "$1" in --list) echo '[{"id":"one","title":"One"},{"id":"two","title":"Two"}]';; *) echo x > x.txt;; esac`,
  );
  const worked = await project.cli(['worker', '--once', '--json']);
  expect(worked).toMatchObject({ code: 0 });
  await captureAndPlay(project, runOf(worked.stdout, 'two'), 'listed');
  expect(project.read('cases/listed/listed.snap')).toContain('it is short');
});

test('refuses a run that another worker took over', async () => {
  const project = workerProject(
    { 'issues/a.md': 'A\n' },
    'if [ ! -e "$(git rev-parse --git-common-dir)/begun" ]; then : > "$(git rev-parse --git-common-dir)/begun"; sleep 60; fi; echo a > a.txt',
  );
  const first = project.begin(['worker', '--json']);
  await until(() => project.has('.git/begun'));
  first.kill('SIGKILL');
  const { stdout } = await first.ended;
  expect(await project.cli(['worker', '--until-idle'])).toMatchObject({ code: 0 });
  const { code, stderr } = await project.cli(['capture', runOf(stdout, 'a'), 'a']);
  expect(code).toBe(1);
  expect(stderr).toContain('a worker died during this run, and another worker took it over');
});

test('keeps no journal of a dispatch that takes no task', async () => {
  const dispatch = (words: string) => `---\nkind: scripted\nscript:\n  - say: "${words}"\n---\n`;
  const project = workerProject({
    'reprise.yaml': 'workers: { dispatch: agent }\n',
    '.reprise/agents/dispatch.md': dispatch('<next>sleep</next>'),
    'issues/a.md': 'A\n',
  });
  const journals = () => readdirSync(join(project.root, stateOf(project.root), 'journal'));
  const looked = await project.cli(['worker', '--once', '--json']);
  expect(looked).toMatchObject({ code: 0 });
  expect(looked.stdout).toContain('"run.completed"');
  expect(journals()).toEqual([]);
  project.write({
    '.reprise/agents/dispatch.md': dispatch('<next>\\nagent: implement\\ntask: a\\nwhy: why not\\n</next>'),
  });
  expect(await project.cli(['worker', '--once', '--json'])).toMatchObject({ code: 0 });
  expect(journals()).toHaveLength(1);
});
