import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect } from 'vitest';
import { parseScore, type Score, scoreFileName } from '../../../src/effects/recording/score-file.ts';
import { digestsOf } from '../../../src/engine/history/digest.ts';
import { type Came, CaseLab } from './case-lab.ts';

/** Records the case once, and gives what its replay came to, which is what the recording came to, byte for byte. */
export async function recordAndReplay(toml: string): Promise<{ readonly lab: CaseLab; readonly came: Came }> {
  const lab = new CaseLab(toml);
  const recorded = await lab.record();
  expect(recorded.failures).toEqual([]);
  expect(Object.values(recorded.histories).map(events => events[0]?.type)).toContain('run.started');
  const replayed = await lab.replay();
  expect(replayed.failures).toEqual([]);
  expectSame(replayed, recorded);
  return { lab, came: replayed };
}

/** The same commit on main, the same events in the store, the same output of every step. */
export function expectSame(came: Came, before: Came): void {
  expect(came.main).toBe(before.main);
  expect(historyDigests(came)).toEqual(historyDigests(before));
  expect(JSON.stringify(came.histories)).toBe(JSON.stringify(before.histories));
  expect(came.outputs).toEqual(before.outputs);
}

const historyDigests = ({ histories }: Came): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(histories).map(([run, events]) => [run, digestsOf(events).history]));

export function scoreOf({ found, files }: CaseLab): Score {
  const file = scoreFileName(found.name);
  return parseScore({ file, text: files()[file] ?? '' });
}

/** What had its turn when. */
export const orderOf = (lab: CaseLab): string =>
  scoreOf(lab)
    .entries.map(({ lane, op }) => `${lane} ${op}`)
    .join('\n');

/** A test that is killed cannot end what it has started. */
const busyWhileParentLives = 'const parent = process.ppid; while (process.ppid === parent);';

/** Does the work while two others want every core all the time. */
export async function underLoad<T>(work: () => Promise<T>): Promise<T> {
  const busy = Array.from({ length: 2 * availableParallelism() }, () =>
    spawn(process.execPath, ['-e', busyWhileParentLives], { stdio: 'ignore' }),
  );
  try {
    return await work();
  } finally {
    for (const child of busy) child.kill('SIGKILL');
  }
}
