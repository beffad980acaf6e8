import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { quickFolder } from './prepare.ts';

function memory(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-memory-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it('uses a file system in memory if there is one', () => {
  const folder = memory();
  expect(quickFolder({}, folder)).toBe(folder);
  expect(readdirSync(folder)).toEqual([]);
  expect(quickFolder({}, join(folder, 'none'))).toBe(tmpdir());
});

it('uses TMPDIR if that is set', () => {
  expect(quickFolder({ TMPDIR: '/somewhere' }, memory())).toBe(tmpdir());
});
