import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type CaptureProject, captureProject, newestJournal } from '../e2e/capture-project.ts';

const secret = 'correct-horse-battery';
const limit = 120_000;

const textBelow = (folder: string): string =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
        .join('\n')
    : '';

async function runOf(project: CaptureProject, args: readonly string[], env = {}): Promise<string> {
  const ended = await project.cli(['run', ...args, '--json'], { env });
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  return project.runOf(ended);
}

describe('a secret that only the workflow knows', () => {
  const scripted = (script: string) =>
    `agents: { t: { kind: scripted, script: [ { run: '${script}' }, { say: ok } ] } }`;

  it.each([
    {
      of: 'a variable of the workflow',
      workflow:
        '{ name: w, inputs: { pw: {} }, env: { DB_PASSWORD: "${{ inputs.pw }}" }, steps: [ { id: a, agent: t, prompt: x } ] }',
    },
    {
      of: 'a variable of a script step',
      workflow:
        '{ name: w, inputs: { pw: {} }, steps: [ { id: a, env: { DB_PASSWORD: "${{ inputs.pw }}" }, run: "echo with $DB_PASSWORD" } ] }',
    },
    {
      of: 'an input with the name of a secret',
      workflow:
        '{ name: w, inputs: { pw: {}, password: {} }, steps: [ { id: a, run: "echo with ${{ inputs.password }}" } ] }',
      more: ['--input', `password=${secret}`],
    },
  ])(
    'is hidden in the journal and the captured case: $of',
    { timeout: limit },
    async ({ workflow, more = [] }) => {
      const project = captureProject({
        files: { 'reprise.yaml': scripted('echo with $DB_PASSWORD'), 'w.yaml': workflow },
      });
      const run = await runOf(project, ['w.yaml', '--input', `pw=${secret}`, ...more]);
      expect(textBelow(newestJournal(project))).not.toContain(secret);
      const captured = await project.cli(['capture', run, 'leak']);
      expect(captured, captured.stderr).toMatchObject({ code: 0 });
      expect(textBelow(join(project.root, 'cases'))).not.toContain(secret);
      expect(textBelow(join(project.root, 'cases'))).toContain('<SECRET:');
      expect(await project.cli(['test', 'leak'])).toMatchObject({ code: 0 });
    },
  );

  it('is hidden if it is a variable of an agent, and fails the capture if the agent wrote it to a file', {
    timeout: limit,
  }, async () => {
    const project = captureProject({
      files: {
        'reprise.yaml': `agents:
  printer: { kind: command, command: ["sh", "-c", "echo using $API_TOKEN"], env: { API_TOKEN: ${secret} } }
  writer: { kind: command, command: ["sh", "-c", "echo $API_TOKEN > token.txt"], env: { API_TOKEN: ${secret} } }`,
        'prints.yaml': '{ name: prints, steps: [ { id: a, agent: printer, prompt: x } ] }',
        'writes.yaml': '{ name: writes, steps: [ { id: a, agent: writer, prompt: x } ] }',
      },
    });
    await runOf(project, ['prints.yaml']);
    expect(textBelow(join(newestJournal(project), 'sessions'))).toContain('using <SECRET:API_TOKEN>');
    const written = await project.cli(['capture', await runOf(project, ['writes.yaml']), 'leak']);
    expect(written.code).toBe(1);
    expect(written.stderr).toContain('secret API_TOKEN');
    expect(written.stderr).toContain('SECRET_LEAKED');
    expect(project.cases()).toEqual([]);
  });
});

describe('a capture', () => {
  const files = {
    'reprise.yaml': `agents: { w: { kind: scripted, script: [ { run: 'for i in $(seq 1 50); do echo $i-$DEPLOY_TOKEN > f$i.txt; done' }, { say: ok } ] } }`,
    'w.yaml': '{ name: w, steps: [ { id: note, agent: w, prompt: x } ] }',
  };
  const env = { DEPLOY_TOKEN: 'open-sesame-42' };

  it('that is killed leaves nothing in cases/, and the next command removes the rest', {
    timeout: limit,
  }, async () => {
    const temporary = mkdtempSync(join(tmpdir(), 'attack-'));
    onTestFinished(() => rmSync(temporary, { recursive: true, force: true }));
    const project = captureProject({ files });
    const run = await runOf(project, ['w.yaml'], env);
    const staging = join(newestJournal(project), '..', '..', 'staging');
    const staged = () => (existsSync(staging) ? readdirSync(staging) : []);
    const capture = project.begin(['capture', run, 'leak'], { env: { ...env, TMPDIR: temporary } });
    while (staged().length === 0 || textBelow(staging) === '') await new Promise(setImmediate);
    capture.kill('SIGKILL');
    await capture.ended;
    expect(staged()).toHaveLength(1);
    expect(project.cases()).toEqual([]);
    await runOf(project, ['w.yaml'], { TMPDIR: temporary });
    expect(staged()).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

describe('a session file', () => {
  it('cannot create folders outside the test', { timeout: limit }, async () => {
    const project = captureProject({
      files: {
        'reprise.yaml': 'agents: { t: { kind: scripted, script: [ { run: "echo x > f" }, { say: ok } ] } }',
        'w.yaml': '{ name: w, steps: [ { id: a, agent: t, prompt: x } ] }',
      },
    });
    const run = await runOf(project, ['w.yaml']);
    expect(await project.cli(['capture', run, 'evil'])).toMatchObject({ code: 0 });
    const outside = join(project.root, 'made-by-a-tape');
    const folder = join(project.root, 'cases', 'evil');
    const name = 'sessions/t.run.a.0.jsonl';
    const session = join(folder, name);
    const climb = `${'../'.repeat(14)}${outside.slice(1)}`;
    const changed = readFileSync(session, 'utf8').replace(
      '"after":{',
      `"after":{"emptyFolders":[${JSON.stringify(climb)}],`,
    );
    writeFileSync(session, changed);
    const score = join(folder, 'evil.score');
    const [header = '', ...rest] = readFileSync(score, 'utf8').split('\n');
    const parsed = JSON.parse(header);
    parsed.files[name] = createHash('sha256').update(changed).digest('hex');
    writeFileSync(score, [JSON.stringify(parsed), ...rest].join('\n'));
    const { code, stdout } = await project.cli(['test', 'evil']);
    expect(code).not.toBe(0);
    expect(stdout).toContain('must stay inside the worktree');
    expect(existsSync(outside)).toBe(false);
  });
});

describe('gc', () => {
  it('removes the empty folders that tasks leave', { timeout: limit }, async () => {
    const project = captureProject({
      files: {
        'reprise.yaml':
          '{ workers: { agent: t }, agents: { t: { kind: scripted, script: [ { run: "echo x > f-$REPRISE_TASK" }, { say: <next>land</next> } ] } } }',
        ...Object.fromEntries([1, 2].map(n => [`issues/t${n}.md`, `# ${n}\n`])),
      },
    });
    expect(await project.cli(['worker', '--until-idle'])).toMatchObject({ code: 0 });
    expect(await project.cli(['gc'])).toMatchObject({ code: 0 });
    const empty = readdirSync(project.root, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isDirectory() && /workspaces|landing|scratch/.test(entry.parentPath))
      .map(entry => join(entry.parentPath, entry.name))
      .filter(folder => readdirSync(folder).length === 0);
    expect(empty).toEqual([]);
  });
});
