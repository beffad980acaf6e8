import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createProject, until } from './run-inline.ts';

const shellCase = (more: string) => `${more}
[files]
".reprise/workflows/hello.yaml" = '''
name: hello
steps: [{ id: say, run: "echo hello" }]
'''
`;

const withCase = (toml: string) => createProject({ files: { 'cases/one/one.toml': toml } });

const filesWith = (root: string, text: string): readonly string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => readFileSync(file, 'latin1').includes(text));

it('records a case, replays it and compares it with its snapshot', async () => {
  const { run, write, read, has } = withCase(shellCase('[run]\nargs = ["hello"]'));
  const unrecorded = await run(['test']);
  expect(unrecorded.code).toBe(1);
  expect(unrecorded.stdout).toContain('reprise test one --record');

  expect((await run(['test', '--record'])).code).toBe(0);
  expect((await run(['test'])).code).toBe(0);

  const snapshot = read('cases/one/one.snap');
  expect(snapshot).toMatch(/^--- run ---\n/);
  expect(snapshot).toContain('--- result ---\nmain:\n  Begin\n');
  write({ 'cases/one/one.snap': snapshot.replace('Begin', 'Began') });
  const inCi = await run(['test'], { env: { CI: 'true' } });
  expect(inCi.code).toBe(1);
  expect(inCi.stdout).toContain('-  Began');
  expect(has('cases/one/one.snap.new')).toBe(false);

  expect((await run(['test'])).code).toBe(1);
  expect(read('cases/one/one.snap.new')).toBe(snapshot);
  expect((await run(['test', 'one', '--accept'])).code).toBe(0);
  expect(read('cases/one/one.snap')).toBe(snapshot);
  expect(has('cases/one/one.snap.new')).toBe(false);
});

it('runs the commands of a group in parallel, and prints their output in the order of the file', async () => {
  const { run, read } = withCase(
    shellCase(`
timeline = true
[[multi.steps]]
name = "first"
command = "run"
args = ["hello"]
concurrent_group = "both"
[[multi.steps]]
name = "second"
command = "run"
args = "hello --quiet"
concurrent_group = "both"
[[multi.steps]]
name = "between"
command = "shell"
script = "look.sh"
[[multi.steps]]
name = "third"
command = "list"
concurrent_group = "both"
[scripts]
"look.sh" = "ls .git/reprise/reprise.db"
`),
  );
  expect(await run(['test', '--record'])).toMatchObject({ code: 0 });
  expect(await run(['test'])).toMatchObject({ code: 0 });
  const sections = read('cases/one/one.snap').match(/^--- .* ---$/gm);
  expect(sections).toEqual([
    '--- first ---',
    '--- second ---',
    '--- between ---',
    '--- third ---',
    '--- result ---',
    '--- timeline ---',
  ]);
  const { witness } = JSON.parse(read('cases/one/one.score').split('\n')[0] ?? '') as {
    readonly witness: { readonly mostOpen: number };
  };
  expect(witness.mostOpen).toBe(2);
});

it('replays ages as they were when the command was recorded', async () => {
  const { run } = withCase(
    shellCase(`
[multi]
steps = [{ name = "first", command = "run", args = ["hello"] }, { name = "second", command = "list" }]
[[triggers]]
step = "first"
label = "store.release"
action = { advance_clock = "2h" }
`),
  );
  expect(await run(['test', '--record'])).toMatchObject({ code: 0 });
  expect(await run(['test'])).toMatchObject({ code: 0 });
});

it('skips a case with `recorded_by` unless that command records it', async () => {
  const { run, read, write, has } = withCase(
    shellCase('recorded_by = "make tapes"\n[run]\nargs = ["hello"]'),
  );
  for (const [args, code] of [[['one'], 1] as const, [['one', '--record'], 2] as const]) {
    const alone = await run(['test', ...args]);
    expect(alone.code).toBe(code);
    expect(alone.stdout).toContain('note: to record it, type: make tapes\n');
  }
  expect(has('cases/one/one.score')).toBe(false);

  const env = { REPRISE_RECORDED_BY: 'make tapes' };
  expect(await run(['test', '--record'], { env })).toMatchObject({ code: 0 });
  const score = read('cases/one/one.score');
  write({ 'cases/two/two.toml': shellCase('[run]\nargs = ["hello"]') });
  const both = await run(['test', '--record']);
  expect(both.code).toBe(0);
  expect(both.stdout).toContain('1 recorded, 1 skipped of 2 cases');
  expect(read('cases/one/one.score')).toBe(score);
  expect(has('cases/two/two.score')).toBe(true);
  expect(await run(['test'])).toMatchObject({ code: 0 });
});

it('records a failing run only if the case expects the failure', async () => {
  const failing = (expectation: string) => `
[run]
args = ["oops"]
${expectation}
[files]
".reprise/workflows/oops.yaml" = '''
name: oops
steps: [{ id: a, run: "exit 3" }]
'''
`;
  const { run, write, has } = withCase(failing(''));
  const refused = await run(['test', '--record']);
  expect(refused.code).toBe(1);
  expect(refused.stdout).toContain('expect = { exit = 1 }');
  expect(has('cases/one/one.score')).toBe(false);
  write({ 'cases/one/one.toml': failing('expect = { exit = 1, output = ["exited with code 3"] }') });
  expect(await run(['test', '--record'])).toMatchObject({ code: 0 });
  expect(await run(['test'])).toMatchObject({ code: 0 });
});

it('a trigger advances the clock, so that a backoff of an hour takes no time', async () => {
  const { run } = withCase(`
[run]
args = ["again"]
expect = { output = ["completed"] }
[[triggers]]
step = "run"
label = "clock.sleep"
nth = 2
action = { advance_clock = "2h" }
[files]
".reprise/workflows/again.yaml" = '''
name: again
steps:
  - id: flaky
    run: test -e tried || { touch tried; exit 1; }
    retry: { attempts: 2, backoff: { initial: 1h, max: 1h } }
'''
`);
  const recorded = await run(['test', '--record']);
  expect(recorded).toMatchObject({ code: 0 });
  expect(await run(['test'])).toMatchObject({ code: 0 });
});

it('fails a case whose trigger or `kill_after` never happens', async () => {
  const { run } = withCase(
    shellCase(`
[[multi.steps]]
name = "a"
command = "run"
args = ["hello"]
[[multi.steps]]
name = "b"
command = "run"
args = ["hello"]
kill_after = { event = "step.failed" }
[[triggers]]
step = "a"
label = "main_head_sha"
action = "exit"
`),
  );
  const { code, stdout } = await run(['test', '--record']);
  expect(code).toBe(1);
  expect(stdout).toContain('the trigger on effect main_head_sha of command a never fired');
  expect(stdout).toContain('command b ended before `kill_after` happened');
});

it('stops a recording on Ctrl-C and keeps nothing of it', async () => {
  const { root, write, start, has } = createProject();
  write({
    'cases/one/one.toml': `
[run]
args = ["long"]
[files]
".reprise/workflows/long.yaml" = '''
name: long
steps: [{ id: wait, run: "touch ${join(root, 'started')}; sleep 60" }]
'''
`,
  });
  const recording = start(['test', '--record']);
  await until(() => has('started'));
  recording.kill('SIGINT');
  const { code, stderr } = await recording.ended;
  expect(code).toBe(130);
  expect(stderr).toContain('stopped before all cases were run');
  expect(readdirSync(join(root, 'cases/one'))).toEqual(['one.toml']);
});

it('refuses an unknown key with its position, and replays nothing', async () => {
  const { run } = withCase(`[run]\nargs = ["hello"]\ntimout = "1m"\n`);
  const { code, stdout } = await run(['test', '--reporter', 'json']);
  expect(code).toBe(2);
  const [result] = stdout.trim().split('\n');
  expect(JSON.parse(result ?? '')).toMatchObject({
    status: 'failed',
    failures: [{ kind: 'definition', file: 'cases/one/one.toml', line: 3 }],
  });
  expect(stdout).toContain('did you mean `timeout`?');
});

it('redacts a printed secret, and fails the recording if a file has one', async () => {
  const talking = (script: string) => `
[run]
args = ["talk"]
[files]
"reprise.yaml" = '''
agents:
  talker: { kind: scripted, script: [{ run: '${script}' }, { say: Done. }] }
'''
".reprise/workflows/talk.yaml" = '''
name: talk
steps: [{ id: talk, agent: talker, prompt: "Talk." }, { id: tell, run: 'echo "$MY_API_TOKEN"' }]
'''
`;
  const env = { MY_API_TOKEN: 'quite-a-secret-value' };
  const { root, run, write, has } = withCase(talking('echo "$MY_API_TOKEN"'));
  expect(await run(['test', '--record'], { env })).toMatchObject({ code: 0 });
  expect(filesWith(root, 'quite-a-secret-value')).toEqual([]);
  expect(await run(['test'])).toMatchObject({ code: 0 });

  write({ 'cases/two/two.toml': talking('echo "$MY_API_TOKEN" > config.ini') });
  const { code, stdout } = await run(['test', 'two', '--record'], { env });
  expect(code).toBe(1);
  expect(stdout).toContain(': secret MY_API_TOKEN');
  expect(stdout).not.toContain('quite-a-secret-value');
  expect(has('cases/two/two.score')).toBe(false);
  expect(filesWith(root, 'quite-a-secret-value')).toEqual([]);
});
