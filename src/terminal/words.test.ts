import { describe, expect, it } from 'vitest';
import { stepsToRunAgain } from './words.ts';

describe('the steps that a resume runs again', () => {
  it('do not include steps that only contain a child workflow', () => {
    const invalidated = ['child', 'child/a', 'child/b', 'land'];
    expect(stepsToRunAgain({ invalidated })).toEqual(['child/a', 'child/b', 'land']);
  });

  it('do not include removed steps', () => {
    expect(stepsToRunAgain({ invalidated: ['test', 'old'], steps: ['build', 'test'] })).toEqual(['test']);
    expect(stepsToRunAgain({})).toEqual([]);
  });
});
