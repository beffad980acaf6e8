import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const cli = resolve('dist/cli/main.js');

it('says that the current folder no longer exists', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-deleted-'));
  const command = `rmdir ${folder} && exec ${process.execPath} ${cli} list`;
  const { status, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' });
  expect(stderr).toContain('error[USAGE]: the current folder no longer exists');
  expect(status).toBe(2);
});
