import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killedChild } from './child.ts';

/** A folder with a run that was killed in its last step, to be copied for every round. */
export function finishedButOne(steps: number) {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-bench-'));
  const original = join(folder, 'original');
  mkdirSync(original);
  const { runId } = killedChild('reprise', 'prepare', steps, original);
  return {
    steps,
    runId,
    original,
    copy() {
      const copy = join(folder, 'copy');
      rmSync(copy, { recursive: true, force: true });
      cpSync(original, copy, { recursive: true });
      return copy;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
