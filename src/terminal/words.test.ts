import { describe, expect, it } from 'vitest';
import { stepsToRunAgain } from './words.ts';

describe('what a resume runs again', () => {
  it('is counted without the steps that only hold those of a child workflow', () => {
    const invalidated = ['child', 'child/a', 'child/b', 'land'];
    expect(stepsToRunAgain({ invalidated })).toEqual(['child/a', 'child/b', 'land']);
  });

  it('leaves out steps that are gone', () => {
    expect(stepsToRunAgain({ invalidated: ['test', 'old'], steps: ['build', 'test'] })).toEqual(['test']);
    expect(stepsToRunAgain({})).toEqual([]);
  });
});
