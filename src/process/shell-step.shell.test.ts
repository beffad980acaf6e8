import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { shellArgv } from './shell-step.ts';
import { labPerTest } from './test-support.ts';

const lab = labPerTest();

test('bash stops at the first failure, even in a pipe, and reads no start-up file', () => {
  expect(shellArgv({ shell: 'bash', scriptFile: '/s', path: process.env['PATH'] })).toEqual({
    shell: 'bash',
    argv: ['bash', '--noprofile', '--norc', '-eo', 'pipefail', '/s'],
  });
});

test('sh stops at the first failure', () => {
  expect(shellArgv({ shell: 'sh', scriptFile: '/s', path: process.env['PATH'] })).toEqual({
    shell: 'sh',
    argv: ['sh', '-e', '/s'],
  });
});

test('sh replaces bash if bash is not installed', () => {
  const bin = join(lab().folder, 'bin');
  mkdirSync(bin);
  symlinkSync('/bin/sh', join(bin, 'sh'));
  expect(shellArgv({ shell: 'bash', scriptFile: '/s', path: bin })).toEqual({
    shell: 'sh',
    argv: ['sh', '-e', '/s'],
  });
  symlinkSync('/bin/sh', join(bin, 'bash'));
  expect(shellArgv({ shell: 'bash', scriptFile: '/s', path: `/nowhere:${bin}` })).toMatchObject({
    shell: 'bash',
  });
});
