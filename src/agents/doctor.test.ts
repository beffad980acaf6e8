import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inspectAgent } from './doctor.ts';
import { agentOf } from './test-support.ts';

let bin = '';
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'reprise-bin-'));
});
afterEach(() => rmSync(bin, { recursive: true }));

const install = (name: string, script: string) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
};
const inspect = (given: Parameters<typeof agentOf>[0]) =>
  inspectAgent(agentOf(given), { path: bin, env: { PATH: process.env['PATH'] } });

test('reports the version of an installed agent', async () => {
  install('claude', '[ "$1" = --version ] && echo "2.1.325 (Claude Code)"');
  expect(await inspect({ kind: 'claude' })).toEqual({
    name: 'coder',
    kind: 'claude',
    installed: true,
    program: join(bin, 'claude'),
    version: '2.1.325',
    usable: true,
  });
});

test('hints at how to install a missing agent', async () => {
  expect(await inspect({ kind: 'codex' })).toMatchObject({
    installed: false,
    usable: false,
    problem: '`codex` was not found on PATH',
    whatToDo: 'install it: npm install -g @openai/codex',
  });
});

test('reports why an agent cannot run', async () => {
  install('gemini', 'echo "needs Node 99" >&2; exit 1');
  expect(await inspect({ kind: 'acp', command: ['gemini', '--acp'] })).toMatchObject({
    installed: true,
    usable: false,
    problem: expect.stringContaining('needs Node 99'),
    whatToDo: 'install it: npm install -g @google/gemini-cli',
  });
});

test('locates a custom program without running it', async () => {
  install('toy', `touch ${join(bin, 'ran')}`);
  expect(await inspect({ kind: 'command', command: ['toy'] })).toMatchObject({ usable: true });
  expect(await inspect({ kind: 'command', command: ['./missing'] })).toMatchObject({
    usable: false,
    whatToDo: expect.stringContaining('correct `command`'),
  });
});

test('finds a scripted agent usable without a program', async () => {
  expect(await inspect({ kind: 'scripted' })).toMatchObject({ installed: true, usable: true });
});

test('asks each program once, however many agents use it', async () => {
  install('claude', `echo asked >> ${join(bin, 'asked')}; echo "version 1.0.102."`);
  const options = { path: bin, env: { PATH: process.env['PATH'] }, versions: new Map() };
  const agents = ['one', 'two', 'three'].map(name => agentOf({ name, kind: 'claude' }));
  const checkups = await Promise.all(agents.map(agent => inspectAgent(agent, options)));
  expect(checkups).toMatchObject([
    { name: 'one', version: '1.0.102' },
    { name: 'two', version: '1.0.102' },
    { name: 'three', version: '1.0.102' },
  ]);
  expect(readFileSync(join(bin, 'asked'), 'utf8')).toBe('asked\n');
});
