import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from './stats.ts';

/** Times in milliseconds: of the first round, and the median of the others. */
export interface Times {
  readonly coldMs: number;
  readonly ms: number;
}

/** A measurement of a contender. `folder` is temporary and removed afterwards. Arguments and result pass through JSON. */
type Method = (folder: string, ...args: never[]) => unknown;

/** The main program of a contender: runs the method named on the command line and prints its measurements. */
export async function contend(methods: Readonly<Record<string, Method>>): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2);
  const method = methods[name];
  if (!method) throw new Error(`no method ${name}; methods: ${Object.keys(methods).join(', ')}`);
  const folder = mkdtempSync(join(tmpdir(), 'reprise-bench-'));
  try {
    // `inChild` checks the arguments against the parameters of the method.
    const result = await method(folder, ...args.map(text => JSON.parse(text) as never));
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
