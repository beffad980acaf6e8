import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { createProject } from '../e2e/run-inline.ts';

const cli = resolve('dist/cli/main.js');

it.each(
  [24, 40, 64].flatMap(files =>
    ['run w.yaml', 'validate w.yaml', 'worker --until-idle', 'test'].map(
      command => [files, command] as const,
    ),
  ),
)('with at most %i open files, `reprise %s` says so and ends', (files, command) => {
  const { root } = createProject({
    git: true,
    files: { 'w.yaml': '{ name: w, steps: [{ id: s, run: "true" }] }' },
  });
  const { status, signal, stderr } = spawnSync(
    'bash',
    ['-c', `ulimit -n ${files}; exec "$0" "$@"`, process.execPath, cli, ...command.split(' ')],
    {
      cwd: root,
      encoding: 'utf8',
      timeout: 20_000,
      killSignal: 'SIGKILL',
      env: { ...process.env, HOME: root },
    },
  );
  expect({ status, signal, stderr }).toEqual({
    status: 1,
    signal: null,
    stderr:
      'error[FILE_LIMIT]: too many open files: the limit of the system is too low\n  hint: raise the limit: ulimit -n 1024\n',
  });
});

it('with at most 128 open files, a run completes', () => {
  const { root } = createProject({
    git: true,
    files: { 'w.yaml': '{ name: w, steps: [{ id: s, run: "true" }] }' },
  });
  const { status, stderr } = spawnSync(
    'bash',
    ['-c', `ulimit -n 128; exec "$0" "$@"`, process.execPath, cli, 'run', 'w.yaml'],
    {
      cwd: root,
      encoding: 'utf8',
      timeout: 20_000,
      env: { ...process.env, HOME: root },
    },
  );
  expect([status, stderr]).toEqual([0, expect.stringContaining('completed')]);
});
