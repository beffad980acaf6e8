import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from './stats.mjs';

/** The main program of a contender: runs the case named on the command line and prints what it measured. */
export async function contend(cases) {
  const [name, ...args] = process.argv.slice(2);
  const folder = mkdtempSync(join(tmpdir(), 'reprise-bench-'));
  try {
    const result = await cases[name]({ folder, args });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As many for every contender: the best of five would flatter whoever gets five. */
const warmRounds = 3;

/** Times a workload in a process that is cold, and again when its code is warm: the median of those. */
export async function coldAndWarm(work) {
  const times = [];
  for (let round = 0; round <= warmRounds; round++) {
    const before = performance.now();
    await work(round);
    times.push(performance.now() - before);
  }
  const [coldMs, ...warm] = times;
  return { coldMs, ms: median(warm) };
}
