import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { caseResult, mixedResults, reported } from './test-support.ts';

describe('the JUnit report', () => {
  it('is a document with a suite for each group', () => {
    expect(reported('junit', mixedResults)).toMatchInlineSnapshot(`
      "<?xml version="1.0" encoding="UTF-8"?>
      <testsuites name="reprise test" tests="5" failures="1" errors="0" skipped="1" time="66.586">
        <testsuite name="orchestration" tests="4" failures="1" errors="0" skipped="1" time="1.586">
          <testcase name="two_workers" classname="orchestration" file="cases/orchestration/two_workers/two_workers.toml" time="0.340"/>
          <testcase name="landing_conflict" classname="orchestration" file="cases/orchestration/two_workers/two_workers.toml" time="1.234"><failure message="the snapshot differs: -1 +1 lines" type="snapshot"><![CDATA[snapshot: the snapshot differs: -1 +1 lines
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
        hint: after fixing the problem: reprise test orchestration/landing_conflict]]></failure><system-out><![CDATA[--- worker_a ---
      landed

      --- worker_b ---
        ::warning::gotcha
      ##[error]not <landed> ]]]]><![CDATA[> & gone
      ]]></system-out></testcase>
          <testcase name="changed" classname="orchestration" file="cases/orchestration/two_workers/two_workers.toml" time="0.012"/>
          <testcase name="later" classname="orchestration" file="cases/orchestration/two_workers/two_workers.toml" time="0.000"><skipped message="needs git 2.38"/></testcase>
        </testsuite>
        <testsuite name="cases" tests="1" failures="0" errors="0" skipped="0" time="65.000">
          <testcase name="new" classname="cases" file="cases/orchestration/two_workers/two_workers.toml" time="65.000"/>
        </testsuite>
      </testsuites>
      "
    `);
  });

  it('is a document even without cases', () => {
    expect(reported('junit', [])).toMatchInlineSnapshot(`
      "<?xml version="1.0" encoding="UTF-8"?>
      <testsuites name="reprise test" tests="0" failures="0" errors="0" skipped="0" time="0.000"/>
      "
    `);
  });

  it('is well-formed for any message and output', () => {
    const nasty = fc
      .array(
        fc.oneof(
          fc.constantFrom(
            ']]>',
            '<![CDATA[',
            '&amp;',
            '<',
            '>',
            '"',
            "'",
            '\n',
            '\u0000',
            '\u001B[1m',
            '\uFFFE',
          ),
          fc.string({ maxLength: 3, unit: 'binary' }),
        ),
        { maxLength: 12 },
      )
      .map(parts => parts.join(''));
    fc.assert(
      fc.property(nasty, nasty, nasty, (message, name, output) => {
        const text = reported('junit', [
          caseResult({
            name,
            group: output,
            status: 'failed',
            failures: [{ kind: 'error', message }],
            steps: [{ name: 's', exitCode: 1, output }],
          }),
        ]);
        const names = elementNames(text);
        expect(names).toEqual([
          ...['testsuites', 'testsuite', 'testcase', 'failure', '/failure'],
          ...['system-out', '/system-out', '/testcase', '/testsuite', '/testsuites'],
        ]);
      }),
    );
  });
});

/** Returns the tags of a document in order. Throws if it is not well-formed. */
function elementNames(xml: string): readonly string[] {
  if (/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u.test(xml)) throw new Error('not allowed');
  const names: string[] = [];
  let rest = xml.replace(/^<\?xml [^?]*\?>/, '');
  const attributes = /(?: [\w-]+="(?:[^<&"\n\t\r]|&(?:amp|lt|gt|quot|apos|#\d+);)*")*/.source;
  const token = new RegExp(
    `^(?:<!\\[CDATA\\[[\\s\\S]*?\\]\\]>|<(/?[\\w-]+)${attributes}/?>|(?:(?!\\]\\]>)[^<&])+)`,
    'u',
  );
  while (rest !== '') {
    const match = token.exec(rest);
    if (!match) throw new Error(`no XML: ${JSON.stringify(rest.slice(0, 80))}`);
    if (match[1] !== undefined) names.push(match[1]);
    rest = rest.slice(match[0].length);
  }
  return names;
}
