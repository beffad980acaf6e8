import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect } from 'vitest';
import { parseScore, type Score, scoreFileName } from '../../../src/effects/recording/score-file.ts';
import { digestsOf } from '../../../src/engine/history/digest.ts';
import { CaseLab, type LabOutcome } from './case-lab.ts';

/** Records the case once, replays it, and expects both outcomes to be the same, byte for byte. */
export async function recordAndReplay(
  toml: string,
): Promise<{ readonly lab: CaseLab; readonly replayed: LabOutcome }> {
  const lab = new CaseLab(toml);
  const recorded = await lab.record();
  expect(recorded.failures).toEqual([]);
  expect(Object.values(recorded.histories).map(events => events[0]?.type)).toContain('run.started');
  const replayed = await lab.replay();
  expect(replayed.failures).toEqual([]);
  expectSame(replayed, recorded);
  return { lab, replayed };
}

/** Expects the same commit on main, the same events in the store, and the same output of every command. */
export function expectSame(actual: LabOutcome, expected: LabOutcome): void {
  expect(actual.main).toBe(expected.main);
  expect(historyDigests(actual)).toEqual(historyDigests(expected));
  expect(JSON.stringify(actual.histories)).toBe(JSON.stringify(expected.histories));
  expect(actual.outputs).toEqual(expected.outputs);
}

const historyDigests = ({ histories }: LabOutcome): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(histories).map(([run, events]) => [run, digestsOf(events).history]));

export function scoreOf({ found, files }: CaseLab): Score {
  const file = scoreFileName(found.name);
  return parseScore({ file, text: files()[file] ?? '' });
}

/** Returns the recorded order of all effects, one effect per line. */
export const orderOf = (lab: CaseLab): string =>
  scoreOf(lab)
    .entries.map(({ lane, op }) => `${lane} ${op}`)
    .join('\n');

/** Exits with its parent, because a killed test cannot stop its children. */
const busyWhileParentLives = 'const parent = process.ppid; while (process.ppid === parent);';

/** Runs `work` while two busy processes per core compete with it. */
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
