import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { realPathOf } from './rules.ts';

let folder = '';
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-paths-')));
  mkdirSync(join(folder, 'in/deep'), { recursive: true });
  mkdirSync(join(folder, 'out'));
  symlinkSync('../out', join(folder, 'in/link'));
  symlinkSync('../out/missing', join(folder, 'in/dangling'));
  symlinkSync('dangling', join(folder, 'in/twice'));
  symlinkSync('loop', join(folder, 'in/loop'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([
  ['.', 'in'],
  ['deep', 'in/deep'],
  ['deep/../new/file', 'in/new/file'],
  ['../out', 'out'],
  ['link', 'out'],
  ['link/new/file', 'out/new/file'],
  ['dangling', 'out/missing'],
  ['dangling/file', 'out/missing/file'],
  ['twice', 'out/missing'],
  ['loop/x', 'in/loop/x'],
])('%s resolves to %s', (path, real) => {
  expect(realPathOf(path, join(folder, 'in'))).toBe(join(folder, real));
});
