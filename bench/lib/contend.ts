import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from './stats.ts';

export interface Order {
  /** Temporary folder, removed after the case. */
  readonly folder: string;
  /** Arguments after the name of the case on the command line. */
  readonly args: readonly string[];
}

/** Times in milliseconds: of the first round, and the median of the others. */
export interface Times {
  readonly coldMs: number;
  readonly ms: number;
}

/** The main program of a contender: runs the case named on the command line and prints its measurements. */
export async function contend(cases: Readonly<Record<string, (order: Order) => unknown>>): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2);
  const folder = mkdtempSync(join(tmpdir(), 'reprise-bench-'));
  try {
    const result = await cases[name]?.({ folder, args });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same number for every contender, so that no contender profits from more rounds. */
const warmRounds = 3;

/** Times a workload in a cold process, then several times warm. Returns the cold time and the median of the warm ones. */
export async function coldAndWarm(work: (round: number) => unknown): Promise<Times> {
  const times: number[] = [];
  for (let round = 0; round <= warmRounds; round++) {
    const before = performance.now();
    await work(round);
    times.push(performance.now() - before);
  }
  const [coldMs = 0, ...warm] = times;
  return { coldMs, ms: median(warm) };
}
