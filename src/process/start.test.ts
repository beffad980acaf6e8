import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isSameProcess, processStart } from './table.ts';
import { labPerTest, readyWithSleeper } from './test-support.ts';

const lab = labPerTest();
const patient = { graceMs: 60_000 };
const path = (name: string) => join(lab().folder, name);

describe('a process', () => {
  test.each([0, 1, 2, 127, 255])('ends with exit code %i', async exitCode => {
    expect(await lab().sh(`echo out; exit ${exitCode}`).ended).toEqual({
      kind: 'exited',
      exitCode,
      tail: 'out\n',
    });
  });

  test.each(['SIGTERM', 'SIGKILL', 'SIGSEGV'] as const)('is terminated by %s', async signal => {
    const script = `echo out; kill -${signal.slice(3)} $$`;
    expect(await lab().sh(script).ended).toEqual({ kind: 'signalled', signal, tail: 'out\n' });
  });

  test.each([
    [
      'a program that does not exist',
      { argv: ['no-such-program'] },
      /no-such-program: no such program/,
      /PATH/,
    ],
    [
      'a folder that does not exist',
      { cwd: '/no/such/folder' },
      /the folder \/no\/such\/folder does not exist/,
      /create/,
    ],
    ['a folder that is a file', { cwd: '/dev/null' }, /\/dev\/null is not a folder/, /working directory/],
    ['an argument that is too long', { argv: ['true', 'x'.repeat(3_000_000)] }, /too long/, /file/],
    [
      'a log file that cannot be written',
      { logFile: '/dev/null/log' },
      /cannot write the log file/,
      /permissions/,
    ],
  ])('does not start with %s', async (_what, options, message, hint) => {
    const child = lab().sh('true', options);
    expect(child.identity).toBeUndefined();
    expect(await child.ended).toEqual({
      kind: 'couldNotStart',
      error: {
        code: 'SPAWN_FAILED',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(hint),
      },
      tail: '',
    });
    expect(await child.stop(patient)).toEqual({ ended: [], survived: [] });
  });

  test('does not start with a program that is not executable', async () => {
    writeFileSync(path('program'), '');
    chmodSync(path('program'), 0o600);
    expect(await lab().sh('', { argv: [path('program')] }).ended).toMatchObject({
      error: {
        code: 'SPAWN_FAILED',
        message: expect.stringContaining('permission denied'),
        hint: expect.stringContaining('chmod +x'),
      },
    });
  });

  test('does not start with a NUL in an argument', async () => {
    expect(await lab().sh('', { argv: ['true', 'a\0b'], logFile: path('log') }).ended).toMatchObject({
      error: { code: 'SPAWN_FAILED', message: expect.stringContaining('null bytes') },
    });
  });
});

describe('a started process', () => {
  test('has the given folder, environment and marker, and inherits nothing else', async () => {
    mkdirSync(path('sub'));
    const env = { PATH: process.env['PATH'], GIVEN: 'yes', LEFT_OUT: undefined };
    const child = lab().sh('pwd; env', { cwd: path('sub'), env });
    await child.ended;
    expect(child.lines.all[0]).toBe(path('sub'));
    const names = child.lines.all.slice(1).map(line => line.split('=')[0]);
    expect(
      names.filter(name => name !== 'PWD' && name !== '_' && name !== 'SHLVL' && name !== 'OLDPWD').sort(),
    ).toEqual(['GIVEN', 'PATH', 'REPRISE_INCARNATION']);
  });

  test('has its own process group', async () => {
    const child = lab().sh('ps -o pgid= -p $$');
    const { tail } = await child.ended;
    expect(Number(tail)).toBe(child.identity?.pid);
  });

  test('has an empty input unless one is given', async () => {
    expect(await lab().sh('cat').ended).toMatchObject({ exitCode: 0, tail: '' });
    expect(await lab().sh('cat', { stdin: { text: 'given' } }).ended).toMatchObject({
      exitCode: 0,
      tail: 'given',
    });
  });

  test('may ignore its input, whatever the size', async () => {
    const stdin = { text: 'x'.repeat(10_000_000) };
    expect(await lab().sh('exit 3', { stdin }).ended).toMatchObject({ kind: 'exited', exitCode: 3 });
  });
});

describe('the output of a process', () => {
  test('is reported as lines with their stream, and written to the log', async () => {
    const lines: string[] = [];
    const onLine = (stream: string, line: string) => lines.push(`${stream}: ${line}`);
    const script = 'echo one; echo two >&2; printf three';
    await lab().sh(script, { onLine, logFile: path('logs/step.log') }).ended;
    expect(lines.sort()).toEqual(['stderr: two', 'stdout: one', 'stdout: three']);
    expect(readFileSync(path('logs/step.log'), 'utf8')).toHaveLength('one\ntwo\nthree'.length);
  });

  test('is appended to an existing log', async () => {
    writeFileSync(path('log'), 'before\n');
    await lab().sh('echo after', { logFile: path('log') }).ended;
    expect(readFileSync(path('log'), 'utf8')).toBe('before\nafter\n');
  });

  test('is written completely to the log even if it is 100 MB, with only its end in memory', async () => {
    const bytes = 100_000_000;
    const script = `head -c ${bytes - 4} /dev/zero; printf done`;
    const { tail } = await lab().sh(script, { logFile: path('log') }).ended;
    expect(statSync(path('log')).size).toBe(bytes);
    expect(tail).toHaveLength(16 * 1024);
    expect(tail.endsWith('\0done')).toBe(true);
  });

  test('is kept in memory only up to the given size', async () => {
    expect(await lab().sh('echo 0123456789', { tailBytes: 4 }).ended).toMatchObject({ tail: '789\n' });
  });

  test('reports that the log cannot be written, and the process continues', async () => {
    const child = lab().sh('echo one; echo two', { logFile: '/dev/full' });
    const { kind, tail } = await child.ended;
    expect(kind).toBe('exited');
    expect(tail).toContain('two\n');
    expect(tail).toMatch(/reprise: the log ends here, because it cannot be written: ENOSPC/);
    // The message may come before or after the last line.
    expect(child.lines.all).toContainEqual(expect.stringContaining('ENOSPC'));
  });
});

describe('a background process that outlives its parent', () => {
  test('does not delay the end of the parent, and stays alive until it is stopped', async () => {
    const child = lab().sh('sleep 1000 & echo left $!', { settleMs: 0 });
    const pid = Number(await child.lines.after('left '));
    const left = { pid, processStart: processStart(pid) ?? '' };
    expect(await child.ended).toMatchObject({ kind: 'exited', exitCode: 0 });
    expect(isSameProcess(left)).toBe(true);
    expect((await child.stop(patient)).ended).toEqual([{ ...left, by: 'SIGTERM' }]);
  });

  test('loses no output that was printed before', async () => {
    const child = lab().sh('head -c 60000 /dev/zero; sleep 1000 & :', { settleMs: 0, logFile: path('log') });
    await child.ended;
    expect(statSync(path('log')).size).toBe(60_000);
    await child.stop(patient);
  });

  test('may still print for a moment', async () => {
    // The reader of the pipe outlives the script, as with `exec > >(tee log)`.
    const script = 'mkfifo pipe; { read line; echo "late $line"; } < pipe & echo word > pipe';
    expect(await lab().sh(script, { settleMs: 60_000 }).ended).toMatchObject({
      exitCode: 0,
      tail: 'late word\n',
    });
  });
});

describe('stopping', () => {
  test('returns when the process and its output have ended', async () => {
    const child = lab().sh(`trap 'echo bye; exit 7' TERM; ${readyWithSleeper}`);
    await child.lines.after('ready');
    const { survived } = await child.stop(patient);
    expect(survived).toEqual([]);
    expect(child.lines.all).toContain('bye');
    expect(await child.ended).toMatchObject({ kind: 'exited', exitCode: 7 });
  });

  test('is idempotent', async () => {
    const child = lab().sh('echo ready; exec sleep 1000');
    await child.lines.after('ready');
    await Promise.all([child.stop(patient), child.stop(patient)]);
    expect(await child.ended).toMatchObject({ kind: 'signalled', signal: 'SIGTERM' });
    expect(await child.stop(patient)).toEqual({ ended: [], survived: [] });
  });
});

describe('an open input', () => {
  test('accepts lines until it is closed', async () => {
    const child = lab().sh('while read -r line; do echo "got $line"; done; echo over', { stdin: 'open' });
    child.write('one\n');
    expect(await child.lines.after('got ')).toBe('one');
    child.write('two\n');
    child.endInput();
    expect(await child.ended).toMatchObject({
      kind: 'exited',
      exitCode: 0,
      tail: 'got one\ngot two\nover\n',
    });
    child.write('lost\n');
  });
});

test('the end of a stream that the process closes itself is reported after its last line', async () => {
  const reported: string[] = [];
  const child = lab().sh('printf last; exec >&-; echo still here >&2; read -r line', {
    stdin: 'open',
    onLine: (stream, line) => void reported.push(`${stream}: ${line}`),
    onStreamEnd: stream => {
      reported.push(`${stream} ended`);
      if (stream === 'stdout') child.endInput();
    },
  });
  await child.ended;
  expect(reported.filter(line => line.startsWith('stdout'))).toEqual(['stdout: last', 'stdout ended']);
});

test('lines are cut at the given length', async () => {
  const reported: unknown[] = [];
  const onLine = (_stream: string, line: string, isCut: boolean) => void reported.push([line, isCut]);
  await lab().sh('echo 12345; echo 123456', { onLine, maxLineLength: 5 }).ended;
  expect(reported).toEqual([
    ['12345', false],
    ['12345…', true],
  ]);
});
