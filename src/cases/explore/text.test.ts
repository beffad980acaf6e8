import { describe, expect, it } from 'vitest';
import type { Exploration } from './contract.ts';
import { progressLine, summaryLines } from './text.ts';

const explored: Exploration = {
  on: 'memory',
  schedules: 130,
  entries: 40_000,
  elapsedMs: 2_000,
  classes: 90,
  pairs: { seen: 50, inBothOrders: 20 },
  isComplete: false,
  alike: [],
  inconclusive: 0,
  counterfactual: 0,
  isComparedWithOrders: true,
  endedBy: 'time',
};

const withPoints = (tried: number, more: Partial<Exploration> = {}): Exploration => ({
  ...explored,
  ...more,
  crashPoints: { tried, of: 123, inconclusive: 0, otherEnds: 0, ...more.crashPoints },
});

const aboutCrashes = (of: Exploration): readonly string[] =>
  summaryLines(of)
    .slice(1)
    .filter(line => line.includes('crash point'));

describe('crash points in the summary', () => {
  it('are not mentioned if no crashes are tried', () => {
    expect(progressLine(explored)).not.toContain('crash');
    expect(aboutCrashes(explored)).toEqual([]);
  });

  it('are counted in the progress line', () => {
    expect(progressLine(withPoints(45))).toBe(
      'in memory: 130 schedules, 65/s, crash points 45 of 123, 90 different, 20 of 50 conflicting pairs in both orders',
    );
  });

  it('are reported as all tried, with the number of inconclusive ones', () => {
    expect(aboutCrashes(withPoints(123))).toEqual([
      'every crash point of the recorded schedule was tried: each command, and all of them together, killed after each effect',
    ]);
    const crashPoints = { tried: 123, of: 123, inconclusive: 4, otherEnds: 2 };
    expect(aboutCrashes({ ...explored, crashPoints })).toEqual([
      'every crash point of the recorded schedule was tried: each command, and all of them together, killed after each effect (4 inconclusive, 2 with the outcome of another schedule)',
    ]);
  });

  it.each([
    ['time', 'reached the time limit'],
    ['schedules', 'reached the maximum number of schedules'],
    ['interrupt', 'interrupted'],
    ['failure', 'a schedule failed first'],
  ] as const)('are reported as not all tried, with the reason: %s', (endedBy, why) => {
    const line = `not every crash point of the recorded schedule was tried: ${why}`;
    expect(aboutCrashes(withPoints(45, { endedBy }))).toEqual([line]);
    const crashPoints = { tried: 0, inconclusive: 0, otherEnds: 0 };
    expect(aboutCrashes({ ...explored, endedBy, crashPoints })).toEqual([line]);
  });
});

describe('inconclusive schedules in the summary', () => {
  const doubt = 'a session does not fit';

  it('are counted, with a note if they ended the exploration', () => {
    const givenUp = { schedules: 50, inconclusive: 30 };
    expect(summaryLines({ ...explored, inconclusive: 30, doubt, givenUp })).toEqual(
      expect.arrayContaining([
        '30 inconclusive (23 %): a session does not fit',
        'stopped trying other schedules after 50: 30 of them were inconclusive',
      ]),
    );
  });
});

describe('symmetric commands in the summary', () => {
  const symmetric = [['worker_a', 'worker_b']];
  const line = 'worker_a, worker_b are symmetric: schedules that only swap them were not played';

  it('qualify a complete exploration', () => {
    expect(summaryLines({ ...explored, alike: symmetric, isComplete: true })).toContain(line);
    expect(summaryLines({ ...explored, alike: symmetric })).not.toContain(line);
  });
});
