import { describe, expect, it } from 'vitest';
import { budgetOf } from './command.ts';

const endless = Number.POSITIVE_INFINITY;
const ofCase = { forMs: 4_000, schedules: 60 };

describe('the exploration budget', () => {
  it('comes from the case, and defaults to one minute', () => {
    expect(budgetOf({}, ofCase)).toEqual(ofCase);
    expect(budgetOf({}, { forMs: undefined, schedules: 60 })).toEqual({ forMs: 60_000, schedules: 60 });
    expect(budgetOf({}, undefined)).toEqual({ forMs: 60_000, schedules: endless });
  });

  it('ignores the limits of the case if the command line sets one', () => {
    expect(budgetOf({ forMs: 90_000 }, ofCase)).toEqual({ forMs: 90_000, schedules: endless });
    expect(budgetOf({ schedules: 500 }, ofCase)).toEqual({ forMs: 60_000, schedules: 500 });
  });
});
