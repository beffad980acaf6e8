import { describe, expect, it } from 'vitest';
import { caseResult, mixedResults } from './reporters/test-support.ts';
import { type CaseResult, caseTitle, type FailureKind, summaryOf } from './result.ts';

const failedWith = (...kinds: readonly FailureKind[]): CaseResult =>
  caseResult({ status: 'failed', failures: kinds.map(kind => ({ kind, message: 'm' })) });

describe('the summary of a test run', () => {
  it('counts cases by status', () => {
    expect(summaryOf(mixedResults)).toEqual({
      total: 5,
      passed: 1,
      failed: 1,
      recorded: 1,
      accepted: 1,
      skipped: 1,
      durationMs: 66_586,
      exitCode: 1,
    });
    expect(summaryOf(mixedResults, 20).durationMs).toBe(20);
  });

  it.each<readonly [string, number, readonly CaseResult[]]>([
    ['nothing', 0, []],
    ['all that passed', 0, [caseResult({}), caseResult({ status: 'recorded' })]],
    ['one that failed', 1, [caseResult({}), failedWith('snapshot')]],
    ['one that failed without a word', 1, [failedWith()]],
    ['a mistake in a case file', 2, [failedWith('definition'), failedWith('error')]],
    ['a replay that diverged', 5, [failedWith('definition'), failedWith('snapshot', 'diverged')]],
    ['less parallelism', 5, [failedWith('witness')]],
    ['entries left over', 5, [failedWith('left-over')]],
    ['a stale recording', 5, [failedWith('stale')]],
    ['what was accepted all the same', 0, [{ ...failedWith('diverged'), status: 'accepted' }]],
  ])('the exit code for %s is %i', (_, exitCode, results) => {
    expect(summaryOf(results).exitCode).toBe(exitCode);
  });

  it('names cases as they are typed', () => {
    expect([caseTitle({ group: 'a/b', name: 'c' }), caseTitle({ group: '', name: 'c' })]).toEqual([
      'a/b/c',
      'c',
    ]);
  });
});
