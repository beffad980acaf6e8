import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { removeLeftovers, temporaryFolder } from './program.ts';

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'temporary-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const longAgo = new Date('2020-01-01');

it('removes the folders of processes that have ended, and keeps those in use', () => {
  const within = emptyFolder();
  const program = `import { temporaryFolder } from '${join(import.meta.dirname, 'program.ts')}';
    temporaryFolder('case', ${JSON.stringify(within)}); process.kill(process.pid, 'SIGKILL');`;
  spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program]);
  const [killed = ''] = readdirSync(within);
  expect(killed).toMatch(/^reprise-case-/);
  const mine = temporaryFolder('case', within);
  expect(removeLeftovers(within)).toBe(1);
  expect(readdirSync(within)).toEqual([basename(mine)]);
});

it('keeps the folder of another process with the same pid only if it started at the same time', () => {
  const within = emptyFolder();
  const mine = temporaryFolder('case', within);
  const reused = mine.replace(/\.[0-9a-f]{8}-\w+$/, '.00000000-abcdef');
  mkdirSync(reused);
  removeLeftovers(within);
  expect([existsSync(mine), existsSync(reused)]).toEqual([true, false]);
});

it('removes folders of another machine after a day, and no folders of other programs', () => {
  const within = emptyFolder();
  const names = [
    'reprise-case-00000000.1.00000000-abcdef',
    'reprise-other',
    'reprise-case-00000000.1.00000000-new',
  ];
  for (const name of names) mkdirSync(join(within, name));
  for (const name of names.slice(0, 2)) utimesSync(join(within, name), longAgo, longAgo);
  removeLeftovers(within);
  expect(readdirSync(within).sort()).toEqual(names.slice(1).sort());
});

it('removes nothing from a folder that does not exist', () => {
  expect(removeLeftovers(join(emptyFolder(), 'none'))).toBe(0);
});
