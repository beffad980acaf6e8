import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type RunShellOptions, runShellStep } from './shell-step.ts';
import { isSameProcess, type ProcessIdentity } from './table.ts';
import { Lines, labPerTest, readyWithSleeper } from './test-support.ts';
import { markedWith } from './tree.ts';

const lab = labPerTest();
const path = (name: string) => join(lab().folder, name);

function step(script: string, options: Partial<RunShellOptions> & { env?: Record<string, string> } = {}) {
  const { env = {}, ...rest } = options;
  return runShellStep({
    command: { script, shell: 'bash', env },
    projectRoot: lab().folder,
    scratchDir: path('scratch/deploy.1'),
    logFile: path('log'),
    identity: {
      runId: 'run-1',
      step: 'deploy/build',
      attempt: 1,
      incarnation: lab().marker['REPRISE_INCARNATION'] ?? '',
    },
    inheritEnv: process.env,
    signal: new AbortController().signal,
    graceMs: 60_000,
    ...rest,
  });
}

describe('a script that succeeds', () => {
  test('returns the values of its output file and the end of its output', async () => {
    const script = 'echo "version=1.2" >> "$REPRISE_OUTPUT"; echo built';
    expect(await step(script)).toEqual({ kind: 'completed', output: { version: '1.2' }, tail: 'built\n' });
    expect(readFileSync(path('log'), 'utf8')).toBe('built\n');
  });

  test('may write JSON to its output file', async () => {
    expect(await step('echo \'{"files": [1, 2]}\' > $REPRISE_OUTPUT')).toMatchObject({
      output: { files: [1, 2] },
    });
  });

  test('returns an empty object if its output file is empty', async () => {
    expect(await step(':')).toEqual({ kind: 'completed', output: {}, tail: '' });
  });

  test('finds its identity in its environment', async () => {
    const names = ['RUN', 'STEP', 'ATTEMPT', 'ROOT'];
    const script = names.map(name => `echo ${name}=$REPRISE_${name}`).join('\n');
    expect(
      await step(`{ ${script}\n} > $REPRISE_OUTPUT`, { env: { REPRISE_RUN: 'not this' } }),
    ).toMatchObject({
      output: { RUN: 'run-1', STEP: 'deploy/build', ATTEMPT: '1', ROOT: lab().folder },
    });
  });

  test('runs in its working directory, and values of its environment are never executed', async () => {
    mkdirSync(path('sub'));
    const value = '$(touch hacked) `x` "quoted" \'single\'\nsecond line';
    const command = {
      script: 'pwd; printf %s "$VALUE"',
      shell: 'sh',
      env: { VALUE: value },
      workingDirectory: 'sub',
    } as const;
    expect(await step('', { command })).toMatchObject({
      kind: 'completed',
      tail: `${path('sub')}\n${value}`,
    });
    expect(existsSync(path('sub/hacked'))).toBe(false);
  });

  test('has a private scratch folder that is removed afterwards', async () => {
    const ls = await step('ls -ld "$(dirname "$REPRISE_OUTPUT")"; ls -l "$REPRISE_OUTPUT"');
    expect(ls).toMatchObject({ tail: expect.stringMatching(/^drwx------[\s\S]*\n-rw-------/) });
    expect(existsSync(path('scratch/deploy.1'))).toBe(false);
  });

  test('does not stop the same step of the same run in another folder', async () => {
    mkdirSync(path('elsewhere'));
    const lines = new Lines();
    const other = step('echo ready; until test -e go; do sleep 0.02; done', {
      projectRoot: path('elsewhere'),
      scratchDir: path('elsewhere/scratch'),
      logFile: path('elsewhere/log'),
      onLine: lines.add,
    });
    await lines.after('ready');
    await step(':');
    writeFileSync(path('elsewhere/go'), '');
    expect(await other).toMatchObject({ kind: 'completed' });
  });

  test('ends together with its background processes, even in another session', async () => {
    const script = `
      nohup sleep 1000 > /dev/null 2>&1 &
      setsid sh -c 'echo $$ > far; exec sleep 1000' &
      until [ -s far ]; do :; done
      echo "kind=done" > $REPRISE_OUTPUT`;
    expect(await step(script)).toMatchObject({ kind: 'completed', output: { kind: 'done' } });
    expect(markedWith(lab().marker)).toEqual([]);
  });

  test('does not stop another script of the run', async () => {
    const { marker, sh } = lab();
    const sibling = sh('echo ready; exec sleep 1000', {
      marker: { ...marker, REPRISE_RUN: 'run-1', REPRISE_STEP: 'other', REPRISE_ATTEMPT: '1' },
    });
    await sibling.lines.after('ready');
    await step(':');
    expect(sibling.identity && isSameProcess(sibling.identity)).toBe(true);
    await sibling.stop({ graceMs: 60_000 });
  });
});

describe('a script that fails', () => {
  test('reports its exit code, its last lines and the path of its log', async () => {
    expect(await step('echo "a=1" > $REPRISE_OUTPUT; echo oh no >&2; exit 2')).toEqual({
      kind: 'failed',
      error: {
        code: 'EXIT_NONZERO',
        message: 'exited with code 2\noh no',
        hint: expect.stringContaining(path('log')),
        exitCode: 2,
      },
      tail: 'oh no\n',
    });
  });

  test('is quoted with its last ten lines, and long lines are cut', async () => {
    const end = await step('seq 1 100; printf "%01000d" 0; exit 1');
    const lines = end.kind === 'failed' ? end.error.message.split('\n') : [];
    expect(lines.slice(0, 3)).toEqual(['exited with code 1', '92', '93']);
    expect(lines.at(-1)).toBe(`${'0'.repeat(300)}…`);
  });

  test('stops at its first failing command, even in a pipe', async () => {
    expect(await step('false; echo not reached')).toMatchObject({ kind: 'failed', tail: '' });
    expect(await step('false | true; echo not reached')).toMatchObject({ kind: 'failed', tail: '' });
  });

  test('is reported as killed if a signal terminated it', async () => {
    expect(await step('kill -KILL $$')).toMatchObject({
      kind: 'failed',
      error: { code: 'KILLED', message: 'was terminated by SIGKILL' },
    });
  });

  test('cannot start in a folder that does not exist', async () => {
    const command = { script: ':', shell: 'sh', env: {}, workingDirectory: 'missing' } as const;
    expect(await step('', { command })).toMatchObject({
      kind: 'failed',
      error: { code: 'SPAWN_FAILED', message: expect.stringContaining(path('missing')) },
    });
  });

  test('fails if its output file is invalid', async () => {
    expect(await step('echo oops > $REPRISE_OUTPUT; echo printed')).toMatchObject({
      kind: 'failed',
      error: { code: 'OUTPUT_INVALID', message: expect.stringContaining('"oops"') },
      tail: 'printed\n',
    });
  });

  test('has a hint if bash is not installed', async () => {
    mkdirSync(path('bin'));
    symlinkSync('/bin/sh', path('bin/sh'));
    const end = await step('a=(1 2)', { env: { PATH: path('bin') } });
    expect(end).toMatchObject({
      kind: 'failed',
      error: { hint: expect.stringContaining('bash is not installed') },
    });
  });
});

describe('aborting', () => {
  test('before the start does not run the script', async () => {
    expect(await step('touch started', { signal: AbortSignal.abort() })).toEqual({ kind: 'cancelled' });
    expect(existsSync(path('started'))).toBe(false);
  });

  test('stops a deep tree that ignores SIGTERM, including a process in another session', async () => {
    const abort = new AbortController();
    const lines = new Lines();
    writeFileSync(
      path('deep.sh'),
      "trap '' TERM\nsetsid sh -c 'echo far; exec sleep 1000' &\necho deep\nwhile :; do sleep 1000; done",
    );
    const ended = step("trap '' TERM; sh -c 'sh deep.sh; :'; :", {
      signal: abort.signal,
      graceMs: 50,
      onLine: lines.add,
    });
    await lines.after('far');
    await lines.after('deep');
    abort.abort();
    expect(await ended).toEqual({ kind: 'cancelled' });
    expect(markedWith(lab().marker)).toEqual([]);
    expect(existsSync(path('scratch/deploy.1'))).toBe(false);
  });

  test('takes precedence over a result that the script still returns', async () => {
    const abort = new AbortController();
    const lines = new Lines();
    const script = `trap 'echo a=1 > $REPRISE_OUTPUT; exit 0' TERM; ${readyWithSleeper}`;
    const ended = step(script, { signal: abort.signal, onLine: lines.add });
    await lines.after('ready');
    abort.abort();
    expect(await ended).toEqual({ kind: 'cancelled' });
  });
});

describe('onStarted', () => {
  test('is called while the process runs', async () => {
    const seen: [ProcessIdentity, boolean][] = [];
    const onStarted = (child: ProcessIdentity) => {
      seen.push([child, isSameProcess(child)]);
      writeFileSync(path('noted'), '');
    };
    await step('until [ -e noted ]; do :; done', { onStarted });
    expect(seen).toEqual([[{ pid: expect.any(Number), processStart: expect.any(String) }, true]]);
  });

  test('stops the script if it rejects', async () => {
    const onStarted = () => Promise.reject(new Error('fenced'));
    await expect(step('exec sleep 1000', { onStarted })).rejects.toThrow('fenced');
    expect(markedWith(lab().marker)).toEqual([]);
  });
});
