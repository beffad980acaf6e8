import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createProject, runInline, type TestProject } from '../e2e/run-inline.ts';

/** The CLI must end by itself: a test that takes longer has found a hang. */
const limit = 30_000;
const megabyte = 1024 * 1024;
const workflow = '{ name: w, inputs: { x: {} }, steps: [{ id: s, run: "true" }] }';

function grow(project: TestProject, file: string, bytes: number): void {
  writeFileSync(join(project.root, file), '');
  truncateSync(join(project.root, file), bytes);
}

describe('a file that is too large', () => {
  it('is refused as a workflow', { timeout: limit }, async () => {
    const steps = Array.from(
      { length: 40_000 },
      (_, index) => `  - {id: s${index}, run: "true ${'y'.repeat(200)}"}`,
    );
    const { code, stderr } = await runInline({
      files: { 'w.yaml': `name: x\nsteps:\n${steps.join('\n')}\n` },
      args: ['validate', 'w.yaml'],
    });
    expect(code).toBe(2);
    expect(stderr).toContain('the file is larger than 1 MB (8.9 MB)');
  });

  it('is refused as the settings of the project', { timeout: limit }, async () => {
    const project = createProject();
    grow(project, 'reprise.yaml', 50 * megabyte);
    const { code, stderr } = await project.run(['validate']);
    expect(code).toBe(2);
    expect(stderr).toContain('the file is larger than 1 MB (50 MB)');
  });

  it('is refused as an input', { timeout: limit }, async () => {
    const project = createProject({ files: { 'w.yaml': workflow } });
    grow(project, 'big.json', 50 * megabyte);
    for (const [name, file] of [
      ['big.json', 'big.json'],
      ['/dev/zero', '/dev/zero'],
    ] as const) {
      const { code, stderr } = await project.run(['run', 'w.yaml', '--input-file', file]);
      expect(code).toBe(2);
      expect(stderr).toContain(`--input-file ${name} is larger than 10 MB`);
    }
    const piped = await project.run(['run', 'w.yaml', '--input-file', '-'], {
      stdin: ' '.repeat(11 * megabyte),
    });
    expect([piped.code, piped.stderr]).toEqual([
      2,
      expect.stringContaining('standard input is larger than 10 MB'),
    ]);
  });
});

it('keys by the ten thousand in a workflow are checked within seconds', { timeout: limit }, async () => {
  const keys = Array.from({ length: 60_000 }, (_, index) => `  a${index}: 1`);
  const text = `steps: [{ id: a, run: ls }]\nenv:\n${keys.join('\n')}\n`;
  const { code } = await runInline({ files: { 'w.yaml': text }, args: ['validate', 'w.yaml'] });
  expect(code).toBe(0);
});

it('a workflow that is a FIFO or a device is not waited for', { timeout: limit }, async () => {
  const project = createProject({ files: { '.reprise/workflows/ok.yaml': workflow } });
  const folder = join(project.root, '.reprise/workflows');
  execFileSync('mkfifo', [join(folder, 'a.yaml')]);
  symlinkSync('/dev/zero', join(folder, 'b.yaml'));
  const { code, stdout, stderr } = await project.run(['validate']);
  expect(code).toBe(2);
  expect(stderr).toContain('the file is a FIFO, not a regular file\n  at .reprise/workflows/a.yaml:1:1');
  expect(stderr).toContain('the file is a device, not a regular file\n  at .reprise/workflows/b.yaml:1:1');
  expect(stdout).toContain('ok .reprise/workflows/ok.yaml');
  // The files of the project are copied when a run starts.
  expect((await project.run(['run', 'ok'])).code).toBe(0);
});

describe('a recorded case', () => {
  const files = {
    'cases/names/names.toml': `
[run]
args = "toy"

[files]
"reprise.yaml" = "agents: { t: { kind: scripted, script: [{ run: 'echo x > f' }, { say: hello }] } }"
".reprise/workflows/toy.yaml" = "{ name: toy, steps: [{ id: a, agent: t, prompt: x }] }"
`,
  };

  async function recorded(): Promise<TestProject> {
    const project = createProject({ git: true, files });
    const { code, stdout, stderr } = await project.run(['test', 'names', '--record']);
    expect([code, stdout + stderr]).toEqual([0, expect.any(String)]);
    return project;
  }

  it.each([
    ['session', (file: string) => file.startsWith('sessions/') && file.endsWith('.jsonl')],
    ['tape', (file: string) => file.endsWith('.vcr')],
    ['score', (file: string) => file.endsWith('.score')],
    ['blob', (file: string) => file.startsWith('blobs/') && file !== 'blobs'],
    ['case file', (file: string) => file.endsWith('.toml')],
  ])('with a %s that is a device or a FIFO is refused', { timeout: 2 * limit }, async (_, isIt) => {
    const project = await recorded();
    const folder = join(project.root, 'cases/names');
    const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find(isIt);
    if (name === undefined) throw new Error(`nothing recorded: ${readdirSync(folder, { recursive: true })}`);
    const file = join(folder, name);
    rmSync(file);
    symlinkSync('/dev/zero', file);
    const device = await project.run(['test', 'names']);
    expect(device.code).not.toBe(0);
    expect(device.stdout + device.stderr).toContain('is a device, not a regular file');
    rmSync(file);
    execFileSync('mkfifo', [file]);
    const fifo = await project.run(['test', 'names']);
    expect(fifo.code).not.toBe(0);
    expect(fifo.stdout + fifo.stderr).toContain('is a FIFO, not a regular file');
  });
});
