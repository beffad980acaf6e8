import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runProgram } from '../process/program.ts';
import { ShellPool } from '../process/shell-pool.ts';
import { isSameProcess, processStart } from '../process/table.ts';
import { createGit } from './git.ts';
import { Lab, plainEnvironment, temporaryFolder } from './test-support.ts';

const folder = mkdtempSync(join(tmpdir(), 'reprise starter-'));
const starter = new ShellPool(folder);
afterAll(() => {
  starter.close();
  rmSync(folder, { recursive: true });
});

const starters = [
  { name: 'this process', runProgram },
  { name: 'a small shell', runProgram: starter.run },
];

describe.each(starters)('a git command that $name starts', ({ runProgram }) => {
  const gitOf = (lab: Lab, inheritEnv: Record<string, string | undefined> = plainEnvironment) =>
    createGit({ cwd: lab.root, inheritEnv, runProgram });

  it('returns its exit code and both outputs', async () => {
    const git = gitOf(new Lab());
    expect(await git.run(['rev-parse', '--verify', '--quiet', 'nothing'])).toEqual({
      code: 1,
      stdout: '',
      stderr: '',
    });
    expect(await git.line(['rev-parse', '--abbrev-ref', 'HEAD'])).toBe('main');
  });

  it('throws an error with the command and the end of its output if it must not fail', async () => {
    const git = gitOf(new Lab());
    await expect(git.ok(['checkout', 'no where'])).rejects.toMatchObject({
      code: 'GIT_FAILED',
      message: `\`git checkout "no where"\` exited with 1: pathspec 'no where' did not match any file(s) known to git`,
    });
  });

  it('passes hostile arguments on literally', async () => {
    const lab = new Lab();
    const hostile = `$(touch broken); "'\n--upload-pack=x`;
    const { code, stderr } = await gitOf(lab).run(['rev-parse', '--verify', '--end-of-options', hostile]);
    expect(code).toBe(128);
    expect(stderr).toContain('Needed a single revision');
    expect(existsSync(join(lab.root, 'broken'))).toBe(false);
  });

  it('reports that git is not on the PATH', async () => {
    const cwd = temporaryFolder();
    await expect(
      createGit({ cwd, inheritEnv: { PATH: cwd }, runProgram }).run(['status']),
    ).rejects.toMatchObject({
      code: 'GIT_NOT_FOUND',
      message: 'git is not on the PATH',
    });
  });

  it('reports that its folder does not exist', async () => {
    const cwd = join(temporaryFolder(), 'gone');
    await expect(
      createGit({ cwd, inheritEnv: plainEnvironment, runProgram }).run(['status']),
    ).rejects.toMatchObject({
      code: 'GIT_FAILED',
      message: expect.stringContaining(`the folder ${cwd} does not exist`),
    });
  });

  it('ignores variables that a hook sets in its environment', async () => {
    const [lab, other] = [new Lab(), new Lab()];
    const astray = {
      ...plainEnvironment,
      GIT_DIR: join(other.root, '.git'),
      GIT_INDEX_FILE: '/nowhere',
      GIT_WORK_TREE: other.root,
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'gc.auto',
      GIT_CONFIG_VALUE_0: '1',
    };
    const git = gitOf(lab, astray);
    expect(await git.line(['rev-parse', '--show-toplevel'])).toBe(lab.root);
    expect(await git.line(['config', 'gc.auto'])).toBe('0');
    expect(await git.line(['status', '--porcelain'])).toBe('');
  });

  it('uses the same language and time zone on every machine, and signs nothing', async () => {
    const git = gitOf(new Lab(), { ...plainEnvironment, LC_ALL: 'de_DE.UTF-8', TZ: 'Asia/Tokyo' });
    expect(await git.line(['log', '-1', '--date=local', '--format=%ad'])).toBe('Thu Jan 1 00:00:00 2026');
    const settings = ['maintenance.auto', 'gc.autoDetach', 'commit.gpgSign', 'core.fsmonitor'];
    for (const setting of settings) expect(await git.line(['config', setting])).toBe('false');
  });

  it('preserves every byte of input and output with the encoding `bytes`', async () => {
    const git = gitOf(new Lab());
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('latin1');
    const id = await git.line(['hash-object', '-w', '--stdin'], { input: bytes, encoding: 'bytes' });
    expect(await git.ok(['cat-file', 'blob', id], { encoding: 'bytes' })).toBe(bytes);
  });

  it('runs hooks unless they are skipped', async () => {
    const lab = new Lab();
    const hook = join(lab.root, '.git', 'hooks', 'pre-commit');
    mkdirSync(join(hook, '..'), { recursive: true });
    writeFileSync(hook, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const commit = ['commit', '--quiet', '--allow-empty', '--message=x'];
    expect((await gitOf(lab).run(commit)).code).toBe(1);
    expect((await gitOf(lab).run(commit, { hooks: 'skip' })).code).toBe(0);
  });

  it('ends with its child processes when it is aborted', async () => {
    const lab = new Lab();
    const file = join(lab.folder, 'pid');
    const stop = new AbortController();
    const script = `alias.last=!sh -c 'echo $$ > "${file}.part"; mv "${file}.part" "${file}"; exec sleep 1000'`;
    const running = gitOf(lab).run(['-c', script, 'last'], { signal: stop.signal });
    while (!existsSync(file)) await new Promise(setImmediate);
    const pid = Number(readFileSync(file, 'utf8'));
    const sleeper = { pid, processStart: processStart(pid) ?? '' };
    expect(isSameProcess(sleeper)).toBe(true);
    stop.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    expect(isSameProcess(sleeper)).toBe(false);
  });

  it('does not wait for a process that a hook left running with its output open', async () => {
    const lab = new Lab();
    const git = gitOf(lab);
    const { stdout } = await git.run(['-c', 'alias.leave=!sleep 1000 & echo $!; true', 'leave']);
    process.kill(Number(stdout), 'SIGKILL');
  });
});
