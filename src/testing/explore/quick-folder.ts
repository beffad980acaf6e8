import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from '../context.ts';
import { stagePrefix } from '../stage.ts';

const inMemory = '/dev/shm';
const leastRoom = 1 << 30;
const longestLifeMs = 24 * 60 * 60_000;

/**
 * Where repositories come and go by the hundred: a file system in memory, if there is one that has room and from which
 * programs can be run. On a disk most of the time would go into making and removing small files.
 */
export function quickFolder(env: TestContext['env'], memory = inMemory): string {
  if (env['TMPDIR'] !== undefined) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < leastRoom || !canRunPrograms(memory)) return tmpdir();
    removeForgotten(memory);
    return memory;
  } catch {
    return tmpdir();
  }
}

function canRunPrograms(folder: string): boolean {
  const own = mkdtempSync(join(folder, stagePrefix));
  try {
    const program = join(own, 'program');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
    return spawnSync(program).status === 0;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/** What a killed process left behind takes memory until somebody removes it. */
function removeForgotten(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (name.startsWith(stagePrefix) && Date.now() - statSync(path).mtimeMs > longestLifeMs)
      rmSync(path, { recursive: true, force: true });
  }
}
