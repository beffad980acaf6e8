import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryProject, testIo } from '../commands/test-support.ts';
import { loadDefinition } from './definitions.ts';
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
