import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from '../../cases/context.ts';
import { ownerFile, stagePrefix } from '../../cases/perform/stage.ts';
import { isSameProcess, type ProcessIdentity, thisProcess } from '../../process/table.ts';

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
    if (!name.startsWith(stagePrefix)) continue;
    const path = join(folder, name);
    try {
      if (isForgotten(path)) rmSync(path, { recursive: true, force: true });
    } catch {
      // It is of another user, or somebody else removes it.
    }
  }
}

/** If nobody can tell whether its owner lives, because it is of another machine or container, its age says it. */
function isForgotten(stage: string): boolean {
  const owner = ownerOf(stage);
  if (owner?.host === thisProcess().host) return !isSameProcess(owner);
  return Date.now() - statSync(stage).mtimeMs > longestLifeMs;
}

function ownerOf(stage: string): (ProcessIdentity & { readonly host: string }) | undefined {
  try {
    return JSON.parse(readFileSync(ownerFile(stage), 'utf8'));
  } catch {
    return undefined;
  }
}
