import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { ShellPool } from './shell-pool.ts';

let folder: string;
let pool: ShellPool;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise pool-')));
  pool = new ShellPool(folder);
  onTestFinished(() => {
    pool.close();
    rmSync(folder, { recursive: true });
  });
});

const env = { PATH: process.env['PATH'] };
const run = (script: string, more: Readonly<Record<string, string>> = {}) =>
  pool.run(['sh', '-c', script], { cwd: folder, env: { ...env, ...more } });

it('returns the output and exit code of each program, without those of earlier ones', async () => {
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

it('passes every byte of input and output, even if they do not fit into a pipe', async () => {
  const input = Buffer.from(Array.from({ length: 300_001 }, (_, at) => at % 256));
  const { stdout } = await pool.run(['cat'], { cwd: folder, env, input });
  expect(stdout.equals(input)).toBe(true);
});

it('runs programs concurrently', async () => {
  // Each program waits until the other has started.
  const waits = (own: string, other: string) =>
    run(`: > ${own}; until [ -e ${other} ]; do :; done; echo ${own}`);
  const [a, b] = await Promise.all([waits('a', 'b'), waits('b', 'a')]);
  expect([a.stdout.toString(), b.stdout.toString()]).toEqual(['a\n', 'b\n']);
});

it('passes exactly the given environment, whatever the names of its variables', async () => {
  const given = { "it's": '1\n2', UID: '77', 'with-dash': `"$(touch broken)'`, EMPTY: '' };
  const { stdout } = await pool.run(['env', '-0'], { cwd: folder, env: { ...env, ...given } });
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
  // The shell itself sets these variables for its children.
  const own = [...Object.keys(env), ...Object.keys(given), 'PWD', 'OLDPWD', 'SHLVL', '_'];
  expect([...seen.keys()].filter(name => !own.includes(name))).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

it('reports why a program could not be started, and still runs others', async () => {
  const cwd = join(folder, 'gone');
  await expect(pool.run(['no such program'], { cwd: folder, env })).rejects.toMatchObject({
    code: 'ENOENT',
  });
  await expect(pool.run([folder], { cwd: folder, env })).rejects.toMatchObject({ code: 'EACCES' });
  await expect(pool.run(['true'], { cwd, env })).rejects.toMatchObject({ code: 'ENOENT' });
  expect((await run('echo on')).stdout.toString()).toBe('on\n');
});

it('reports a program that a signal terminated, and replaces a shell that was killed', async () => {
  expect((await run('kill -KILL $$')).code).toBe(128);
  await expect(run('kill -KILL $PPID')).rejects.toThrow('the shell that starts programs has ended');
  expect((await run('echo on')).stdout.toString()).toBe('on\n');
});
