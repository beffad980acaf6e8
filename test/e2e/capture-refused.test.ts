import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stateOf } from '../support/state.ts';
import { type CaptureProject, captureProject, newestJournal } from './capture-project.ts';
import { until } from './run-inline.ts';

const files = {
  'README.md': 'Helo, world!\n',
  'reprise.yaml': `
agents:
  fixer:
    kind: scripted
    script: [{ run: agent-tool README.md }, { say: Fixed the typo. }]
`,
  '.reprise/workflows/fix.yaml': `
name: fix
steps:
  - { id: fix, agent: fixer, prompt: Fix the typo. }
  - { id: land, needs: [fix], land: main, from: fix }
`,
};

async function oneRun(project: CaptureProject, env = {}): Promise<string> {
  const run = await project.cli(['run', 'fix', '--json'], { env });
  expect(run).toMatchObject({ code: 0 });
  return project.runOf(run);
}

test('capture fails on a secret in a file that the agent wrote, and writes no case', async () => {
  const secret = 'correct-horse-battery-staple';
  const project = captureProject({ files, tool: 'printf "key=%s\\n" "$DEPLOY_TOKEN" > config.txt' });
  const env = { DEPLOY_TOKEN: secret };
  const run = await oneRun(project, env);
  const captured = await project.cli(['capture', run, 'leak/planted'], { env });
  expect(captured.code).toBe(1);
  expect(captured.stderr).toContain('SECRET_LEAKED');
  expect(captured.stderr).toContain(': secret DEPLOY_TOKEN');
  expect(captured.stderr).not.toContain(secret);
  expect(project.has('cases')).toBe(false);
});

test('capture refuses an unknown run, an invalid name and a damaged journal, and says what to do', async () => {
  const project = captureProject({ files });
  const run = await oneRun(project);
  const refusal = async (...args: readonly string[]) => {
    const { code, stderr } = await project.cli(['capture', ...args]);
    expect(code).not.toBe(0);
    return project.stable(stderr);
  };
  expect(await refusal('nosuchrun', 'a')).toMatchInlineSnapshot(`
    "error[RUN_NOT_FOUND]: cannot find run nosuchrun
      hint: list all runs: reprise list
    "
  `);
  expect(await refusal(run, '../a')).toMatchInlineSnapshot(`
    "error[USAGE]: invalid case name "../a"
      hint: use letters, digits, - and _, optionally after a group: landing/lost_race
    "
  `);
  expect(await refusal(run, 'a b')).toMatchInlineSnapshot(`
    "error[USAGE]: invalid case name "a b"
      hint: use letters, digits, - and _, optionally after a group: landing/lost_race
    "
  `);
  expect(project.has('cases')).toBe(false);

  expect(await project.cli(['capture', run, 'a'])).toMatchObject({ code: 0 });
  expect(await refusal(run, 'a')).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: case a already exists
      hint: choose another name, or pass --force to replace it
    "
  `);
  expect(await refusal(run, 'a/b')).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: cases/a is a case itself and cannot contain other cases
      hint: choose another name
    "
  `);
  const before = project.cases();
  expect(await project.cli(['capture', run, 'a', '--force'])).toMatchObject({ code: 0 });
  expect(project.cases()).toEqual(before);

  appendFileSync(join(newestJournal(project), 'entries.jsonl'), '{"n":\n{"n":3}\n');
  expect(
    (await refusal(run, 'b')).replace(/\S+Z-\d+/g, '<journal>').replace(/jsonl:\d+/, 'jsonl:<line>'),
  ).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: journal <journal> is damaged: <journal>/entries.jsonl:<line>: not JSON: Unexpected end of JSON input
      hint: run the workflow again and capture the new run
    "
  `);
  rmSync(newestJournal(project), { recursive: true });
  expect(await refusal(run, 'b')).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: run <run> has no journal
      hint: Reprise keeps the journals of the newest 20 runs, up to 500 MB, and none with \`record: false\` in reprise.yaml; run the workflow again and capture the new run
    "
  `);
  expect(project.cases()).toEqual(before);
});

test('a run with `record: false` has no journal to capture', async () => {
  const project = captureProject({
    files: { ...files, 'reprise.yaml': `record: false\n${files['reprise.yaml']}` },
  });
  const run = await oneRun(project);
  expect(project.has(`${stateOf(project.root)}/journal`)).toBe(false);
  const { stderr } = await project.cli(['capture', run, 'a']);
  expect(stderr).toContain(`run ${run} has no journal`);
  expect(stderr).toContain('record: false');
});

test('capture refuses a run that is still running', async () => {
  const project = captureProject({
    files: { ...files, '.gitignore': 'working\n' },
    tool: 'touch working; sleep 60',
  });
  const running = project.begin(['run', 'fix', '--json']);
  await until(() => project.git('worktree', 'list').includes('fix'));
  await until(() => running.stdout.includes('session.started'));
  const { runId } = JSON.parse(running.stdout.split('\n')[0] ?? '');
  const { code, stderr } = await project.cli(['capture', runId, 'a']);
  expect(code).toBe(1);
  expect(project.stable(stderr)).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: run <run> is still running
      hint: wait for it to end, or cancel it: reprise cancel <run>
    "
  `);
});

test('capture refuses a run during which another process moved main', async () => {
  const project = captureProject({
    files,
    tool: `sed -i "s/Helo/Hello/" "$@"
cd "$(git rev-parse --path-format=absolute --git-common-dir)/.." && git -c user.name=bo -c user.email=bo@x commit --quiet --allow-empty -m "Concurrent commit"`,
  });
  const run = await oneRun(project);
  const { code, stderr } = await project.cli(['capture', run, 'a']);
  expect(code).toBe(1);
  expect(stderr.replace(/\b[0-9a-f]{10}\b/g, '<sha>')).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: another process moved main during the run: it was at <sha>, and the landing found it at <sha>
      hint: a case does not record other processes; run the workflow again while nothing else changes main, and capture that run
    "
  `);
  expect(project.has('cases')).toBe(false);
});

test('capture refuses a run whose commits were garbage-collected', async () => {
  const project = captureProject({
    files: {
      ...files,
      '.reprise/workflows/fix.yaml': 'name: fix\nsteps: [{ id: fix, agent: fixer, prompt: Fix the typo. }]\n',
    },
  });
  const run = await oneRun(project);
  project.git('worktree', 'remove', '--force', '--force', `.reprise/workspaces/fix/${run}/fix`);
  project.git('branch', '-D', `reprise/fix/${run}/fix`);
  project.git('reflog', 'expire', '--expire=now', '--all');
  project.git('gc', '--quiet', '--prune=now');
  const { code, stderr } = await project.cli(['capture', run, 'a']);
  expect(code).toBe(1);
  expect(stderr.replace(/\b[0-9a-f]{12}\b( and \d+ more)?/g, '<sha>')).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: git objects of the run are missing from the repository: <sha>
      hint: \`git gc\` removes objects that no branch reaches; run the workflow again and capture the new run before the branches of its workspaces are deleted
    "
  `);
});

test('capture refuses a run with events that are in no journal', async () => {
  const project = captureProject({
    files: {
      ...files,
      '.reprise/workflows/fix.yaml':
        'name: fix\nsteps: [{ id: fix, agent: fixer, prompt: Fix the typo. }, { id: ok, needs: [fix], approve: Continue? }]\n',
    },
  });
  const waiting = await project.cli(['run', 'fix', '--json']);
  const run = project.runOf(waiting);
  expect(await project.cli(['cancel', run])).toMatchObject({ code: 0 });
  const { code, stderr } = await project.cli(['capture', run, 'a']);
  expect(code).toBe(1);
  expect(project.stable(stderr)).toMatchInlineSnapshot(`
    "error[CAPTURE_REFUSED]: 4 of the 15 events of run <run> are missing from its journals
      hint: another process wrote them, such as \`reprise cancel\`, or the process of the run died while writing them; run the workflow again and capture the new run
    "
  `);
});
