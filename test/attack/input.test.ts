import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createProject, runInline } from '../e2e/run-inline.ts';
import { workerProject } from '../e2e/worker-project.ts';

/** The CLI must end by itself: a test that takes longer has found a hang. */
const limit = 30_000;

describe('an output schema', () => {
  const stepWith = (output: string, text: string) => `
name: w
steps:
  - id: a
    run: printf '%s' '${text}' > "$REPRISE_OUTPUT"
    output: ${output}
    timeout: 5s
`;

  it('checks a pattern that would make a backtracking engine hang', { timeout: limit }, async () => {
    const output = '{ type: object, properties: { a: { type: string, pattern: "^(a+)+$" } } }';
    const { code, stderr } = await runInline({
      files: { 'w.yaml': stepWith(output, `{"a":"${'a'.repeat(40)}!"}`) },
      args: ['run', 'w.yaml'],
    });
    expect(code).toBe(1);
    expect(stderr).toContain('output.a: must match pattern "^(a+)+$"');
  });

  it('without a type is checked', { timeout: limit }, async () => {
    const output = '{ properties: { files: { type: array } }, required: [files, plan] }';
    const { code, stderr } = await runInline({
      files: { 'w.yaml': stepWith(output, '{"files":7}') },
      args: ['run', 'w.yaml'],
    });
    expect(code).toBe(1);
    expect(stderr).toContain('output.files: must be an array, not a number');
    expect(stderr).toContain('output.plan: is required');
  });
});

it('an expected output that would make a backtracking engine hang is compared', {
  timeout: limit,
}, async () => {
  const { stdout, stderr } = await runInline({
    git: true,
    files: {
      'cases/slow/slow.toml': `
[multi]
steps = [{ name = "print", command = "shell", script = "print.sh", expect = { output = "/^(a+)+$/" } }]

[scripts]
"print.sh" = "echo ${'a'.repeat(40)}!"
`,
    },
    args: ['test', 'slow', '--record'],
  });
  expect(stdout + stderr).toContain('expected /^(a+)+$/ in the output');
});

it('a matrix of a billion combinations is refused before it is built', { timeout: limit }, async () => {
  const axes = Array.from({ length: 9 }, (_, index) => `k${index}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`);
  const workflow = `{ name: x, steps: [{ id: a, run: ls, strategy: { matrix: { ${axes.join(', ')} } } }] }`;
  const { code, stderr } = await runInline({ files: { 'w.yaml': workflow }, args: ['validate', 'w.yaml'] });
  expect(code).toBe(2);
  expect(stderr).toContain('must have at most 10000 combinations, not 1000000000');
});

describe('a key that every object has', () => {
  it('is refused as the name of an input', { timeout: limit }, async () => {
    const workflow =
      '{ name: w, inputs: { __proto__: { default: given } }, steps: [{ id: a, run: "echo [${{ inputs.__proto__ }}]" }] }';
    const { code, stderr } = await runInline({ files: { 'w.yaml': workflow }, args: ['validate', 'w.yaml'] });
    expect(code).toBe(2);
    expect(stderr).toContain('`__proto__` cannot be a key');
    expect(stderr).toContain('w.yaml:1:22');
  });

  it('is data like any other in JSON', { timeout: limit }, async () => {
    const json = '{"__proto__":{"polluted":1},"constructor":2}';
    const workflow = `
name: w
inputs: { x: { type: json } }
outputs: { all: "\${{ steps.a.outputs }}", own: "\${{ inputs.x.__proto__.polluted }}", none: "\${{ inputs.x.polluted }}" }
steps:
  - { id: a, run: 'printf %s "\${{ toJSON(inputs.x) }}" > "$REPRISE_OUTPUT"' }
`;
    const { code, stdout } = await runInline({
      files: { 'w.yaml': workflow },
      args: ['run', 'w.yaml', '--input-json', `{"x":${json}}`],
    });
    expect([code, stdout.trim()]).toEqual([0, `{"all":${json},"own":1,"none":null}`]);
  });

  it('is an unknown input, not a lost one', { timeout: limit }, async () => {
    const files = { 'w.yaml': '{ name: w, steps: [{ id: a, run: "true" }] }' };
    for (const args of [
      ['--input', '__proto__=z'],
      ['--input-json', '{"__proto__":{}}'],
    ]) {
      const { code, stderr } = await runInline({ files, args: ['run', 'w.yaml', ...args] });
      expect([code, stderr]).toEqual([2, expect.stringContaining('unknown input `__proto__`')]);
    }
  });
});

it('`validate` runs no module of a foreign repository', { timeout: limit }, async () => {
  const module = "import fs from 'node:fs'; fs.writeFileSync('ran', 'x'); export default 5;";
  const { code, stderr, project } = await runInline({
    files: { '.reprise/workflows/x.mjs': module },
    args: ['validate'],
  });
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^1 TypeScript workflow not checked/)]);
  expect(project.has('ran')).toBe(false);
});

describe('tasks', () => {
  const land =
    '{ kind: scripted, script: [{ run: echo x > $REPRISE_TASK.txt }, { say: <next>land</next> }] }';
  const config = `workers: { agent: t }\nagents: { t: ${land} }\n`;

  it('keep every byte of a file that is not UTF-8', { timeout: limit }, async () => {
    const project = createProject({ git: true, files: { 'reprise.yaml': config } });
    const text = Buffer.from('# Pr\u00fcfe die Gr\u00f6\u00dfe\n\nCaf\u00e9.\n', 'latin1');
    mkdirSync(join(project.root, 'issues'));
    writeFileSync(join(project.root, 'issues/size.md'), text);
    const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: project.root });
    git(
      '-c',
      'user.name=a',
      '-c',
      'user.email=a@example.com',
      'commit',
      '-q',
      '--allow-empty',
      '-m',
      'Begin',
    );
    git('add', '--all');
    git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'Write a task');
    const { code, stderr } = await project.run(['worker', '--until-idle']);
    expect(code, stderr).toBe(0);
    const landed = git('show', 'HEAD:issues/size.md');
    expect(landed.toString('latin1')).toBe(`---\nstate: done\n---\n\n${text.toString('latin1')}`);
    expect(git('log', '-1', '--format=%s').toString().trim()).toBe('Pr\u00fcfe die Gr\u00f6\u00dfe');
  });

  it('are listed by a command that prints megabytes on one line', { timeout: limit }, async () => {
    const script = `const body = 'x'.repeat(1e6);
process.stdout.write(JSON.stringify([1, 2, 3].map(id => ({ id: 'T-' + id, title: 't', body }))));`;
    const project = workerProject({
      agents: { implement: 'true' },
      config: 'tasks: { command: node list.mjs }',
      files: { 'list.mjs': script },
    });
    const { code, stdout, stderr } = await project.cli(['tasks', '--json']);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('T-3');
    expect(stdout + stderr).not.toContain('not JSON');
  });
});
