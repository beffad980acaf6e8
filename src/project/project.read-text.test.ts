import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryProject, testIo } from '../commands/test-support.ts';
import { loadAgents } from './agents.ts';
import { loadDefinition } from './definitions.ts';
import { definitionFiles } from './journal/run-journal.ts';
import { findProject, readConfig } from './project.ts';

const latin1 = Buffer.from('name: caf\u00e9\nsteps: []\n', 'latin1');

describe('a file that is not UTF-8', () => {
  it('is rejected as a workflow with the position of the first invalid byte', async () => {
    const root = temporaryProject();
    writeFileSync(join(root, 'w.yaml'), Buffer.concat([Buffer.from('# \u6f22\n'), latin1]));
    const io = testIo(root);
    await expect(loadDefinition('w.yaml', { project: findProject(io), io })).rejects.toMatchObject({
      code: 'DEFINITION_INVALID',
      message: 'w.yaml:2:10: the file is not valid UTF-8\n  hint: save it as UTF-8',
    });
  });

  it('is rejected as the settings of the project', async () => {
    const root = temporaryProject();
    writeFileSync(join(root, 'reprise.yaml'), latin1);
    const io = testIo(root);
    await expect(readConfig(findProject(io), io)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      position: { file: 'reprise.yaml', line: 1, column: 10 },
    });
  });
});

describe('a file that is too large or not a file', () => {
  it.each([
    ['w.yaml', 'steps: [{ id: a, uses: ./child.yaml }]', 'child.yaml'],
    ['w.yaml', 'steps: [{ id: a, agent: x, prompt: { file: prompt.md } }]', 'prompt.md'],
  ])('is rejected in %s with %s', async (name, text, large) => {
    const root = temporaryProject();
    writeFileSync(join(root, name), text);
    writeFileSync(join(root, large), '');
    truncateSync(join(root, large), 50 * 1024 * 1024);
    const io = testIo(root);
    await expect(loadDefinition(name, { project: findProject(io), io })).rejects.toMatchObject({
      code: 'DEFINITION_INVALID',
      message: `${large}:1:1: the file is larger than 1 MB (50 MB)`,
    });
  });

  it('is rejected as a workflow, as the settings and as an agent', async () => {
    const root = temporaryProject();
    mkdirSync(join(root, '.reprise', 'workflows'), { recursive: true });
    mkdirSync(join(root, '.reprise', 'agents'), { recursive: true });
    execFileSync('mkfifo', [join(root, '.reprise/workflows/w.yaml'), join(root, 'reprise.yaml')]);
    symlinkSync('/dev/zero', join(root, '.reprise/agents/a.md'));
    const io = testIo(root);
    const project = findProject(io);
    await expect(loadDefinition('w', { project, io })).rejects.toMatchObject({
      code: 'DEFINITION_INVALID',
      message: '.reprise/workflows/w.yaml:1:1: the file is a FIFO, not a regular file',
    });
    await expect(readConfig(project, io)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('the file is a FIFO, not a regular file'),
    });
    await expect(loadAgents({ project, io }, {})).rejects.toMatchObject({
      code: 'DEFINITION_INVALID',
      message: '.reprise/agents/a.md:1:1: the file is a device, not a regular file',
    });
  });

  it('is left out of the files of a journal', () => {
    const root = temporaryProject();
    mkdirSync(join(root, '.reprise', 'workflows'), { recursive: true });
    execFileSync('mkfifo', [join(root, '.reprise/workflows/w.yaml')]);
    writeFileSync(join(root, 'reprise.yaml'), 'agents: {}');
    expect(definitionFiles(root)).toEqual({ 'reprise.yaml': 'agents: {}' });
  });
});
