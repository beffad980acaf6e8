import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CommandIo } from '../../project/host.ts';
import { temporaryProject, testIo } from '../test-support.ts';
import { initCommand, writeAll } from './init.ts';

/** A repository without a commit. */
function repository(files: Readonly<Record<string, string>> = {}): string {
  const root = temporaryProject(files);
  execFileSync('git', ['init', '--quiet', '--initial-branch=main', root]);
  return root;
}

const ioIn = (root: string, more: Partial<CommandIo> = {}) =>
  testIo(root, { env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' }, ...more });

const init = async (root: string, options: Parameters<typeof initCommand>[1] = {}, io = ioIn(root)) => ({
  code: await initCommand({ io }, options),
  ...io.printed,
});

const outcomes = async (root: string, options: Parameters<typeof initCommand>[1] = {}) => {
  const { out } = await init(root, { ...options, json: true });
  const { files } = JSON.parse(out) as { files: { path: string; outcome: string; why?: string }[] };
  return Object.fromEntries(
    files.map(({ path, outcome, why }) => [path, why ? `${outcome}: ${why}` : outcome]),
  );
};

const never = (async function* () {
  await new Promise(() => {});
  yield '';
})();

describe('reprise init', () => {
  it('changes nothing when it is interrupted at a question', async () => {
    const root = repository({ 'reprise.yaml': 'record: false\n' });
    const interrupt = new AbortController();
    const io = ioIn(root, { stdin: never, interrupt: interrupt.signal });
    const asked: CommandIo = {
      ...io,
      err: text => {
        io.err(text);
        if (text.includes('[y/N]')) interrupt.abort('interrupted by Ctrl-C');
      },
    };
    expect(await initCommand({ io: asked }, {})).toBe(1);
    expect(io.printed).toEqual({
      out: '',
      err: 'overwrite reprise.yaml? [y/N] \ninterrupted: nothing was created or changed\n',
    });
    expect(execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' })).toBe(
      '?? reprise.yaml\n',
    );
  });

  it('asks nothing and keeps existing files if the terminal cannot be asked', async () => {
    const root = repository({ 'reprise.yaml': 'record: false\n' });
    const io = ioIn(root, { stdin: never, isTTY: { stdin: true, stdout: true, stderr: true } });
    const { code, out, err } = await init(root, {}, io);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(
      'kept reprise.yaml: it differs; to overwrite all files that differ: reprise init --yes\n',
    );
  });

  it('reads answers line by line, however the input is chunked', async () => {
    const root = repository();
    await init(root);
    const names = ['dispatch', 'implement', 'review'].map(name => `.reprise/agents/${name}.md`);
    for (const name of names) writeFileSync(join(root, name), 'mine');
    const stdin = (async function* () {
      yield 'n';
      yield Buffer.from('o\nYE');
      yield 'S\r\ny';
    })();
    const { out } = await init(root, {}, ioIn(root, { stdin }));
    expect(names.map(name => readFileSync(join(root, name), 'utf8') === 'mine')).toEqual([
      true,
      false,
      false,
    ]);
    expect(out).toContain(`kept ${names[0]}: it differs\noverwrote ${names[1]}\noverwrote ${names[2]}\n`);
  });

  it('skips agents that are already defined, and examples next to existing files', async () => {
    const root = repository({
      'reprise.yaml': 'agents: { review: { kind: codex } }\ntasks: { folder: todo }\n',
      'todo/a.md': '# A\n',
      '.reprise/workflows/fix.yaml': 'steps: []\n',
    });
    expect(await outcomes(root)).toEqual({
      'reprise.yaml': 'kept: it differs; to overwrite all files that differ: reprise init --yes',
      '.reprise/agents/dispatch.md': 'made',
      '.reprise/agents/implement.md': 'made',
      '.reprise/agents/review.md': 'skipped: reprise.yaml defines the agent review',
      '.reprise/workflows/example.yaml': 'skipped: its folder already has other files',
      'todo/example.md': 'skipped: its folder already has other files',
    });
  });

  it('writes the example task into the folder of tasks, and none if a command lists tasks', async () => {
    expect(await outcomes(repository({ 'reprise.yaml': 'tasks: { folder: todo }\n' }))).toHaveProperty(
      ['todo/example.md'],
      'made',
    );
    const listed = await outcomes(repository({ 'reprise.yaml': 'tasks: { command: ./tasks }\n' }));
    expect(Object.keys(listed).filter(path => path.endsWith('example.md'))).toEqual([]);
  });

  it('never overwrites a changed example, even with --yes', async () => {
    const root = repository();
    await init(root);
    writeFileSync(join(root, 'issues/example.md'), '# A real task\n');
    expect(await outcomes(root, { yes: true })).toMatchObject({
      'issues/example.md': 'kept: you have changed the example',
    });
    expect(readFileSync(join(root, 'issues/example.md'), 'utf8')).toBe('# A real task\n');
  });

  it('notes invalid settings and continues without them', async () => {
    const { code, out } = await init(repository({ 'reprise.yaml': 'agents: [\n' }));
    expect(code).toBe(0);
    expect(out).toContain('note: reprise.yaml has problems; see them: reprise validate reprise.yaml\n');
  });

  it('names the files that git ignores', async () => {
    const root = repository({ '.gitignore': '.reprise\n' });
    const { out } = await init(root);
    expect(out).toContain(
      'note: git ignores .reprise/agents/dispatch.md, .reprise/agents/implement.md, .reprise/agents/review.md, .reprise/workflows/example.yaml, so `git add` skips them; see why: git check-ignore -v --no-index .reprise/agents/dispatch.md\n',
    );
    expect(readFileSync(join(root, '.gitignore'), 'utf8')).toBe('.reprise\n');
  });

  it('notes a nested project around the current folder', async () => {
    const root = repository({ 'sub/reprise.yaml': '' });
    const { out } = await init(root, {}, ioIn(join(root, 'sub')));
    expect(out).toContain('note: commands in sub use the project in that folder, not this one\n');
  });
});

describe('a failing reprise init', () => {
  const refusal = async (root: string): Promise<unknown> => {
    const before = execFileSync('git', ['status', '--porcelain', '-uall'], { cwd: root, encoding: 'utf8' });
    const thrown = await init(root).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(execFileSync('git', ['status', '--porcelain', '-uall'], { cwd: root, encoding: 'utf8' })).toBe(
      before,
    );
    return thrown;
  };

  it.each([
    [
      { issues: 'a file\n' },
      'issues/example.md cannot be created: issues is not a folder. Nothing was changed',
    ],
    [
      { '.reprise/agents': '' },
      '.reprise/agents/dispatch.md cannot be created: .reprise/agents is not a folder. Nothing was changed',
    ],
    [
      { 'reprise.yaml/x': '' },
      'reprise.yaml cannot be created: reprise.yaml is not a file. Nothing was changed',
    ],
  ])('changes nothing if a path is blocked: %j', async (files, message) => {
    expect(await refusal(repository(files))).toMatchObject({ code: 'INIT_FAILED', message });
  });

  it('changes nothing if a folder is a link out of the repository or a broken link', async () => {
    const outside = repository();
    symlinkSync(tmpdir(), join(outside, 'issues'));
    expect(await refusal(outside)).toMatchObject({
      message: expect.stringContaining('issues is a link to a folder outside the repository'),
    });
    const nowhere = repository();
    symlinkSync('gone', join(nowhere, 'issues'));
    expect(await refusal(nowhere)).toMatchObject({
      message: expect.stringContaining('issues is a broken link: ENOENT'),
    });
  });

  it.skipIf(process.getuid?.() === 0)('changes nothing if a folder is not writable', async () => {
    const root = repository();
    mkdirSync(join(root, 'issues'), { mode: 0o555 });
    expect(await refusal(root)).toMatchObject({
      message: expect.stringContaining('issues is not writable: EACCES'),
    });
  });

  it('refuses a bare repository and the .git folder', async () => {
    const bare = temporaryProject();
    execFileSync('git', ['init', '--quiet', '--bare', bare]);
    expect(await init(bare)).toMatchObject({
      code: 2,
      err: `error[NOT_A_REPOSITORY]: ${bare} is a bare repository, which has no working tree\n  hint: clone it and run this in the clone: reprise init\n`,
    });
    const inside = join(repository(), '.git');
    expect(await init(inside)).toMatchObject({
      code: 2,
      err: expect.stringContaining('is inside the .git folder of a repository'),
    });
  });
});

it('names the file that cannot be written and the files written before it', () => {
  const root = repository();
  const made = (path: string) => ({ file: { path, text: 'x' }, path, outcome: 'made' as const });
  // The file was created after the survey.
  writeFileSync(join(root, 'b'), 'other text');
  expect(() => writeAll([made('a'), made('b'), made('c')], root)).toThrowError(
    expect.objectContaining({
      code: 'INIT_FAILED',
      message: 'b cannot be written: EEXIST. Already written: a',
    }),
  );
  expect(readFileSync(join(root, 'b'), 'utf8')).toBe('other text');
  rmSync(join(root, 'a'));
  expect(() => writeAll([made('b/c')], root)).toThrowError(
    /b\/c cannot be written: \w+\. Nothing was changed/,
  );
});
