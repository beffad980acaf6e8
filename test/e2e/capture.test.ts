import { expect, test } from 'vitest';
import { captureAndPlay, captureProject } from './capture-project.ts';
import { until } from './run-inline.ts';

const fixer = `
agents:
  fixer:
    kind: scripted
    script:
      - say: Looking for the typo.
      - run: agent-tool README.md
      - say: Fixed the typo.
`;

const fix = `
name: fix
inputs: { file: { type: string, default: README.md } }
steps:
  - { id: fix, agent: fixer, prompt: "Fix the typo in \${{ inputs.file }}.", checks: ['grep -q Hello README.md'] }
  - { id: land, needs: [fix], land: main, from: fix, verify: 'test -s README.md' }
`;

test('a completed run with a landing replays where no agent can start', async () => {
  const project = captureProject({
    files: {
      'README.md': 'Helo, world!\nHelo, reader!\n',
      'reprise.yaml': fixer,
      '.reprise/workflows/fix.yaml': fix,
    },
    // One typo per run, so that the second run has work to do.
    tool: 'sed -i "0,/Helo/s//Hello/" "$@"',
  });
  await project.cli(['run', 'fix', '--json']);
  const run = await project.cli(['run', 'fix', '--json', '-i', 'file=README.md']);
  expect(run.code).toBe(0);
  const text = await captureAndPlay(project, project.runOf(run), 'landing/first');
  expect(text).toContain(
    'args = [".reprise/workflows/fix.yaml", "--input-json", "{\\"file\\":\\"README.md\\"}"]',
  );
  expect(text).toContain('branch = "main"');
  expect(text).not.toContain('[files]');
  expect(project.read('cases/landing/first/first.snap')).toContain('landed 1 commit on main');
});

test('a run that starts at a landed commit and changes nothing replays', async () => {
  const project = captureProject({
    files: { 'README.md': 'Helo, world!\n', 'reprise.yaml': fixer, '.reprise/workflows/fix.yaml': fix },
  });
  await project.cli(['run', 'fix', '--json']);
  const run = await project.cli(['run', 'fix', '--json']);
  await captureAndPlay(project, project.runOf(run), 'unchanged');
  expect(project.read('cases/unchanged/unchanged.snap')).toContain('nothing to land');
});

test('a run of a single agent replays with definitions that were never committed', async () => {
  const project = captureProject({ files: { 'README.md': 'Helo, world!\n' } });
  project.write({ 'reprise.yaml': fixer });
  const run = await project.cli(
    ['run', '--agent', 'fixer', '--prompt', '-', '--check', 'grep -q Hello README.md', '--json'],
    { stdin: '--fix the typo,\n"please"' },
  );
  expect(run.code).toBe(0);
  const text = await captureAndPlay(project, project.runOf(run), 'adhoc');
  expect(text).toContain("\"reprise.yaml\" = '''");
});

test('a failed run replays all attempts of its agent', async () => {
  const project = captureProject({
    files: {
      'README.md': 'Helo, world!\n',
      'reprise.yaml': fixer,
      '.reprise/workflows/fix.yaml': `
name: fix
steps:
  - { id: fix, agent: fixer, prompt: Fix the typo., checks: ['echo still wrong; grep -q Bye README.md'], on_fail: { rework: 1 } }
  - { id: land, needs: [fix], land: main, from: fix }
`,
    },
  });
  const run = await project.cli(['run', 'fix', '--json']);
  expect(run.code).toBe(1);
  const text = await captureAndPlay(project, project.runOf(run), 'failed');
  expect(text).toContain('expect = { exit = 1 }');
  expect(project.cases().filter(file => /sessions\/fixer.*jsonl$/.test(file))).toHaveLength(2);
});

const slowFixer = `
agents:
  fixer:
    kind: scripted
    script:
      - write: { path: half.txt, content: "half\\n" }
      - say: The first half is done.
      - run: agent-tool README.md
`;

const slowTool = (root: string) =>
  `touch ${root}/.git/working; test -e ${root}/.git/continue || sleep 60; sed -i "s/Helo/Hello/" "$@"`;

function slowProject() {
  const project = captureProject({
    files: { 'README.md': 'Helo, world!\n', 'reprise.yaml': slowFixer, '.reprise/workflows/fix.yaml': fix },
    tool: slowTool('$(git rev-parse --path-format=absolute --git-common-dir)/..'),
  });
  return project;
}

test('a run that Ctrl-C suspended replays', async () => {
  const project = slowProject();
  const running = project.begin(['run', 'fix', '--json']);
  await until(() => project.has('.git/working'));
  running.kill('SIGINT');
  const run = await running.ended;
  expect(run.code).toBe(130);
  const text = await captureAndPlay(project, project.runOf(run), 'cancelled');
  expect(text).toContain('expect = { exit = 130 }');
  expect(text).toContain('label = "session.next"');
});

test('a killed run replays together with its resume', async () => {
  const project = slowProject();
  const running = project.begin(['run', 'fix']);
  await until(() => project.has('.git/working'));
  running.kill('SIGKILL');
  await running.ended;
  project.write({ '.git/continue': '' });
  const resumed = await project.cli(['resume', '--json']);
  expect(resumed.code).toBe(0);
  const text = await captureAndPlay(project, project.runOf(resumed), 'killed');
  expect(text).toContain('{ name = "run", command = "run", args = [".reprise/workflows/fix.yaml"');
  expect(text).toMatch(/kill_after = \{ effect = "[\w.]+", nth = \d+ \}/);
  expect(text).toContain('{ name = "resume", command = "resume"');
});

test('a killed run that was never resumed replays', async () => {
  const project = slowProject();
  const running = project.begin(['run', 'fix', '--json']);
  await until(() => project.has('.git/working'));
  running.kill('SIGKILL');
  const text = await captureAndPlay(project, project.runOf(await running.ended), 'interrupted');
  expect(text).toContain('[run]');
  expect(text).toContain('kill_after');
});

test('a fan-out with a selection replays', async () => {
  const project = captureProject({
    files: {
      'README.md': 'Helo, world!\n',
      'reprise.yaml': `
agents:
  fixer:
    kind: scripted
    script: [{ run: 'agent-tool "$REPRISE_WORKER" > result.txt' }, { say: Done. }]
  critic:
    kind: scripted
    script: [{ result: { output: { winner: 2, reason: It passes the gate. } } }]
`,
      '.reprise/workflows/three.yaml': `
name: three
steps:
  - id: fix
    agent: fixer
    prompt: Fix the typo.
    concurrency: 3
    select: { gates: ['grep -q good result.txt'] }
  - { id: land, needs: [fix], land: main, from: fix }
`,
    },
    tool: 'if [ "$1" = 1 ]; then echo good; else echo bad; fi',
  });
  const run = await project.cli(['run', 'three', '--json', '--max-concurrent', '3']);
  expect(run.code).toBe(0);
  const text = await captureAndPlay(project, project.runOf(run), 'three');
  expect(text).toContain('"--max-concurrent", "3"');
});

test('a run that waited for an approval replays with the answer', async () => {
  const project = captureProject({
    files: {
      'README.md': 'Helo, world!\n',
      'reprise.yaml': fixer,
      '.reprise/workflows/fix.yaml': `
name: fix
steps:
  - { id: fix, agent: fixer, prompt: Fix the typo. }
  - { id: ok, needs: [fix], approve: Land the fix? }
  - { id: land, needs: [ok], land: main, from: fix }
`,
    },
  });
  const waiting = await project.cli(['run', 'fix', '--json']);
  expect(waiting.code).toBe(3);
  const run = project.runOf(waiting);
  expect(await project.cli(['approve', run])).toMatchObject({ code: 0 });
  expect(await project.cli(['resume', run])).toMatchObject({ code: 0 });
  const text = await captureAndPlay(project, run, 'approved');
  expect(text).toContain('expect = { exit = 3 }');
});

test('a fork replays together with its original run', async () => {
  const project = captureProject({
    files: { 'README.md': 'Helo, world!\n', 'reprise.yaml': fixer, '.reprise/workflows/fix.yaml': fix },
  });
  const first = await project.cli(['run', 'fix', '--json']);
  const forked = await project.cli(['resume', project.runOf(first), '--from', 'land', '--json']);
  expect(forked.code).toBe(0);
  expect(project.runOf(forked)).not.toBe(project.runOf(first));
  const text = await captureAndPlay(project, project.runOf(forked), 'forked');
  expect(text).toContain('"--from=land"');
});
