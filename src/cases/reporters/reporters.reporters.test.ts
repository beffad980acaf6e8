import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { displayWidth } from '../../terminal/text.ts';
import type { CaseFailure, FailureKind } from '../result.ts';
import { hintOf } from './default.ts';
import { reporterNames } from './reporters.ts';
import { caseResult, mixedResults, reported } from './test-support.ts';

describe('the default report', () => {
  it('has a line for each case, then every failure in full, then a summary', () => {
    expect(reported('default', mixedResults)).toMatchInlineSnapshot(`
      "✓ orchestration/two_workers         340ms
      ✗ orchestration/landing_conflict     1.2s  the snapshot differs: -1 +1 lines
      ● new                              1m 05s  recorded
        note: 2 sessions, 3 tapes
      ✓ orchestration/changed              12ms  accepted
      – orchestration/later                      skipped
        note: needs git 2.38

      ✗ orchestration/landing_conflict
        snapshot: the snapshot differs: -1 +1 lines
          at cases/orchestration/landing_conflict/landing_conflict.snap:12
          @@ -10,4 +10,4 @@ worker_b
           worker_b: started
          -landed 1 commit on main
          +::error::not landed: 50 %

          hint: if the new snapshot is correct: reprise test orchestration/landing_conflict --accept
                the new snapshot: cases/orchestration/landing_conflict/landing_conflict.snap.new

        expectation: worker_b: expected exit code 0, got 6
          the output ends with:
          | not landed
          at cases/orchestration/landing_conflict/landing_conflict.toml:7
          hint: after fixing the problem: reprise test orchestration/landing_conflict

      1 failed, 1 passed, 1 recorded, 1 accepted, 1 skipped of 5 cases in 1m 06s
      "
    `);
  });

  it('has the same text in color', () => {
    const coloured = reported('default', mixedResults, { color: true });
    expect(coloured).toContain('\u001B[31m-landed 1 commit on main\u001B[39m');
    expect(stripVTControlCharacters(coloured)).toBe(reported('default', mixedResults));
  });

  it('is short if all cases pass', () => {
    expect(reported('default', [caseResult({}), caseResult({ name: 'b' })])).toMatchInlineSnapshot(`
      "✓ orchestration/two_workers    340ms
      ✓ orchestration/b              340ms

      2 passed in 680ms
      "
    `);
    expect(reported('default', [])).toBe('no cases\n');
  });

  it('can be limited to ASCII', () => {
    expect(reported('default', mixedResults, { unicode: false })).toMatch(/^[\n\u0020-\u007E]*$/);
  });

  it('fits case lines into the width, however long names and messages are', () => {
    const word = fc.string({ minLength: 1, maxLength: 90, unit: 'grapheme' });
    fc.assert(
      fc.property(word, word, fc.integer({ min: 40, max: 120 }), (name, message, columns) => {
        const failures: readonly CaseFailure[] = [{ kind: 'error', message }];
        const [line = ''] = reported('default', [caseResult({ name, status: 'failed', failures })], {
          columns,
        }).split('\n');
        expect(displayWidth(line)).toBeLessThanOrEqual(columns);
      }),
    );
  });

  it('truncates a long diff', () => {
    const diff = Array.from({ length: 1000 }, (_, index) => `+line ${index}`).join('\n');
    const text = reported('default', [
      caseResult({ status: 'failed', failures: [{ kind: 'snapshot', message: 'x', diff }] }),
    ]);
    expect(text).toContain('... and 700 more lines');
    expect(text.split('\n').length).toBeLessThan(320);
  });

  it.each<readonly [FailureKind, string]>([
    ['diverged', 'if the new behavior is intended, record the case again: reprise test g/x --record'],
    ['snapshot', 'if the new snapshot is correct: reprise test g/x --accept'],
    ['expectation', 'after fixing the problem: reprise test g/x'],
    ['leak', 'after removing it from the output and files of the case: reprise test g/x --record'],
  ])('hints at what to type after %s', (kind, hint) => {
    const place = { name: 'x', group: 'g' };
    expect(hintOf(place, { kind, message: 'm' })).toBe(hint);
    expect(hintOf(place, { kind, message: 'm', hint: 'look' })).toBe(`look\n${hint}`);
    expect(hintOf(place, { kind, message: 'm', hint: 'type reprise x' })).toBe('type reprise x');
  });
});

describe('the JSON report', () => {
  it('has an object for each case and one for the summary', () => {
    const lines = reported('json', mixedResults).trimEnd().split('\n');
    const objects = lines.map(line => JSON.parse(line));
    expect(objects.map(({ type, name, status }) => [type, name, status])).toEqual([
      ['case', 'two_workers', 'passed'],
      ['case', 'landing_conflict', 'failed'],
      ['case', 'new', 'recorded'],
      ['case', 'changed', 'accepted'],
      ['case', 'later', 'skipped'],
      ['summary', undefined, undefined],
    ]);
    expect(objects[1]).toEqual({ type: 'case', ...mixedResults[1] });
    expect(objects.at(-1)).toMatchInlineSnapshot(`
      {
        "accepted": 1,
        "durationMs": 66586,
        "exitCode": 1,
        "failed": 1,
        "passed": 1,
        "recorded": 1,
        "skipped": 1,
        "total": 5,
        "type": "summary",
      }
    `);
  });
});

describe('the GitHub report', () => {
  it('adds groups and annotations, and escapes output that looks like a command', () => {
    const text = reported('github', mixedResults, { pathPrefix: 'packages/a/' });
    expect(text).toMatchInlineSnapshot(`
      "✓ orchestration/two_workers         340ms
      ✗ orchestration/landing_conflict     1.2s  the snapshot differs: -1 +1 lines
      ● new                              1m 05s  recorded
        note: 2 sessions, 3 tapes
      ✓ orchestration/changed              12ms  accepted
      – orchestration/later                      skipped
        note: needs git 2.38
      ::group::output of orchestration/landing_conflict
      --- worker_a --- exit 0
      landed
      --- worker_b --- exit 6
        : :warning::gotcha
      ## [error]not <landed> ]]> & gone
      ::endgroup::

      ✗ orchestration/landing_conflict
        snapshot: the snapshot differs: -1 +1 lines
          at cases/orchestration/landing_conflict/landing_conflict.snap:12
          @@ -10,4 +10,4 @@ worker_b
           worker_b: started
          -landed 1 commit on main
          +::error::not landed: 50 %

          hint: if the new snapshot is correct: reprise test orchestration/landing_conflict --accept
                the new snapshot: cases/orchestration/landing_conflict/landing_conflict.snap.new

        expectation: worker_b: expected exit code 0, got 6
          the output ends with:
          | not landed
          at cases/orchestration/landing_conflict/landing_conflict.toml:7
          hint: after fixing the problem: reprise test orchestration/landing_conflict

      1 failed, 1 passed, 1 recorded, 1 accepted, 1 skipped of 5 cases in 1m 06s
      ::error file=packages/a/cases/orchestration/landing_conflict/landing_conflict.snap,line=12,title=orchestration/landing_conflict%3A the snapshot differs%3A -1 +1 lines::snapshot: the snapshot differs: -1 +1 lines%0A  at cases/orchestration/landing_conflict/landing_conflict.snap:12%0A  @@ -10,4 +10,4 @@ worker_b%0A   worker_b: started%0A  -landed 1 commit on main%0A  +::error::not landed: 50 %25%0A%0A  hint: if the new snapshot is correct: reprise test orchestration/landing_conflict --accept%0A        the new snapshot: cases/orchestration/landing_conflict/landing_conflict.snap.new
      ::error file=packages/a/cases/orchestration/landing_conflict/landing_conflict.toml,line=7,title=orchestration/landing_conflict%3A expected exit code 0%2C got 6::expectation: worker_b: expected exit code 0, got 6%0A  the output ends with:%0A  | not landed%0A  at cases/orchestration/landing_conflict/landing_conflict.toml:7%0A  hint: after fixing the problem: reprise test orchestration/landing_conflict
      "
    `);
  });

  it('contains only its own commands for any message and output', () => {
    const evil = fc
      .array(fc.constantFrom('::', ':', '##[', 'error', '\n', '\r', '%0A', '%', ' ', ',', 'x', '\u001B[1m'))
      .map(parts => parts.join(''));
    fc.assert(
      fc.property(evil, evil, evil, (message, output, file) => {
        const failures: readonly CaseFailure[] = [
          { kind: 'error', message, hint: message, diff: output, file },
        ];
        const steps = [{ name: output, exitCode: 1, output }];
        const result = caseResult({ name: output, status: 'failed', failures, steps, notes: [message] });
        const lines = reported('github', [result]).split(/\r\n|\r|\n/);
        const commands = lines.filter(line => /^\s*::/.test(line)).map(line => /::(\w+)/.exec(line)?.[1]);
        expect(commands).toEqual(['group', 'endgroup', 'error']);
        expect(lines.some(line => line.includes('##['))).toBe(false);
        const error = lines.find(line => line.startsWith('::error '));
        expect(error).toMatch(/^::error file=[^:,]*,title=[^:,]*::/);
      }),
    );
  });
});

it('there are four reporters', () => {
  expect(reporterNames).toEqual(['default', 'json', 'junit', 'github']);
});
