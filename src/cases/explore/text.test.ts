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

describe('what is said of crash points', () => {
  it('is nothing unless crashes are tried', () => {
    expect(progressLine(explored)).not.toContain('crash');
    expect(aboutCrashes(explored)).toEqual([]);
  });

  it('is how many there are and were tried, also while it goes on', () => {
    expect(progressLine(withPoints(45))).toBe(
      'in memory: 130 schedules, 65/s, crash points 45 of 123, 90 different, 20 of 50 pairs in both orders',
    );
  });

  it('is that all of them were tried, with those of which nothing is known', () => {
    expect(aboutCrashes(withPoints(123))).toEqual([
      'every crash point of the recorded order was tried: each step, and all at once, after each effect',
    ]);
    const crashPoints = { tried: 123, of: 123, inconclusive: 4, otherEnds: 2 };
    expect(aboutCrashes({ ...explored, crashPoints })).toEqual([
      'every crash point of the recorded order was tried: each step, and all at once, after each effect (4 inconclusive, 2 with the end of another order)',
    ]);
  });

  it.each([
    ['time', 'the time was up before'],
    ['schedules', 'the limit of schedules was reached before'],
    ['interrupt', 'it was interrupted before'],
    ['failure', 'something failed before'],
  ] as const)('is why some were not: %s', (endedBy, why) => {
    const line = `not every crash point of the recorded order was tried: ${why}`;
    expect(aboutCrashes(withPoints(45, { endedBy }))).toEqual([line]);
    const crashPoints = { tried: 0, inconclusive: 0, otherEnds: 0 };
    expect(aboutCrashes({ ...explored, endedBy, crashPoints })).toEqual([line]);
  });
});

describe('what is said of doubt', () => {
  const doubt = 'a session does not fit';

  it('is how much there is, and that other orders were given up for it', () => {
    const givenUp = { schedules: 50, inconclusive: 30 };
    expect(summaryLines({ ...explored, inconclusive: 30, doubt, givenUp })).toEqual(
      expect.arrayContaining([
        '30 inconclusive (23 %): a session does not fit',
        'other orders were given up after 50: of 30 of them nothing can be said',
      ]),
    );
  });
});

describe('what is said of steps that are alike', () => {
  const alike = [['worker_a', 'worker_b']];
  const said = 'worker_a, worker_b are alike: which of them is which was not tried out';

  it('is what `complete` does not claim', () => {
    expect(summaryLines({ ...explored, alike, isComplete: true })).toContain(said);
    expect(summaryLines({ ...explored, alike })).not.toContain(said);
  });
});
