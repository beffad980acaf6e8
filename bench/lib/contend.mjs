import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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

/** Times a workload in a process that is cold, and again when its code is warm. */
export async function coldAndWarm(work, warmRounds = 5) {
  const times = [];
  for (let round = 0; round <= warmRounds; round++) {
    const before = performance.now();
    await work(round);
    times.push(performance.now() - before);
  }
  const [cold, ...warm] = times;
  return { coldMs: cold, ms: Math.min(...warm) };
}
