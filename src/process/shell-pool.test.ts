import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { ShellPool } from './shell-pool.ts';

let folder: string;
let starter: ShellPool;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise starter-')));
  starter = new ShellPool(folder);
  onTestFinished(() => {
    starter.close();
    rmSync(folder, { recursive: true });
  });
});

const env = { PATH: process.env['PATH'] };
const run = (script: string, more: Readonly<Record<string, string>> = {}) =>
  starter.run(['sh', '-c', script], { cwd: folder, env: { ...env, ...more } });

it('gives each program its own outputs and exit code, whatever ran before', async () => {
  const outputs = [];
  for (const script of ['echo long; echo err >&2', 'echo x', 'exit 3']) {
    const { code, stdout, stderr } = await run(script);
    outputs.push([code, stdout.toString(), stderr.toString()]);
  }
  expect(outputs).toEqual([
    [0, 'long\n', 'err\n'],
    [0, 'x\n', ''],
    [3, '', ''],
  ]);
});

it('gives more output than fits into a pipe, and keeps every byte of its input', async () => {
  const input = Buffer.from(Array.from({ length: 300_001 }, (_, at) => at % 256));
  const { stdout } = await starter.run(['cat'], { cwd: folder, env, input });
  expect(stdout.equals(input)).toBe(true);
});

it('runs as many at once as are asked for', async () => {
  // Each waits until the other has begun.
  const waits = (own: string, other: string) =>
    run(`: > ${own}; until [ -e ${other} ]; do :; done; echo ${own}`);
  const [a, b] = await Promise.all([waits('a', 'b'), waits('b', 'a')]);
  expect([a.stdout.toString(), b.stdout.toString()]).toEqual(['a\n', 'b\n']);
});

it('passes the environment that was given and nothing else, whatever its names are', async () => {
  const given = { "it's": '1\n2', UID: '77', 'with-dash': `"$(touch broken)'`, EMPTY: '' };
  const { stdout } = await starter.run(['env', '-0'], { cwd: folder, env: { ...env, ...given } });
  const seen = new Map(
    stdout
      .toString()
      .split('\0')
      .flatMap((pair): [string, string][] => {
        const [name = '', ...value] = pair.split('=');
        return name === '' ? [] : [[name, value.join('=')]];
      }),
  );
  expect(Object.fromEntries(Object.keys(given).map(name => [name, seen.get(name)]))).toEqual(given);
  // A shell tells its children where they are.
  const own = [...Object.keys(env), ...Object.keys(given), 'PWD', 'OLDPWD', 'SHLVL', '_'];
  expect([...seen.keys()].filter(name => !own.includes(name))).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

it('says why a program could not be started, and goes on with others', async () => {
  const cwd = join(folder, 'gone');
  await expect(starter.run(['no such program'], { cwd: folder, env })).rejects.toMatchObject({
    code: 'ENOENT',
  });
  await expect(starter.run([folder], { cwd: folder, env })).rejects.toMatchObject({ code: 'EACCES' });
  await expect(starter.run(['true'], { cwd, env })).rejects.toMatchObject({ code: 'ENOENT' });
  expect((await run('echo on')).stdout.toString()).toBe('on\n');
});

it('says that a program ended by a signal, and starts another shell if its own was ended', async () => {
  expect((await run('kill -KILL $$')).code).toBe(128);
  await expect(run('kill -KILL $PPID')).rejects.toThrow('the shell that starts programs has ended');
  expect((await run('echo on')).stdout.toString()).toBe('on\n');
});
