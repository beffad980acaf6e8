import { type CaseResult, summaryOf, type TestReporter } from '../result.ts';
import type { TestReporterOptions } from './default.ts';
import { createTestReporter, type ReporterName } from './reporters.ts';

export const caseResult = (changes: Partial<CaseResult>): CaseResult => ({
  name: 'two_workers',
  group: 'orchestration',
  file: 'cases/orchestration/two_workers/two_workers.toml',
  status: 'passed',
  durationMs: 340,
  failures: [],
  notes: [],
  steps: [],
  ...changes,
});

/** One result of each status. */
export const mixedResults: readonly CaseResult[] = [
  caseResult({}),
  caseResult({
    name: 'landing_conflict',
    status: 'failed',
    durationMs: 1234,
    failures: [
      {
        kind: 'snapshot',
        message: 'the snapshot differs: -1 +1 lines',
        file: 'cases/orchestration/landing_conflict/landing_conflict.snap',
        line: 12,
        diff: '@@ -10,4 +10,4 @@ worker_b\n worker_b: started\n-landed 1 commit on main\n+::error::not landed: 50 %\n\n',
        hint: 'if the new snapshot is correct: reprise test orchestration/landing_conflict --accept\nthe new snapshot: cases/orchestration/landing_conflict/landing_conflict.snap.new',
      },
      {
        kind: 'expectation',
        step: 'worker_b',
        message: 'expected exit code 0, got 6\nthe output ends with:\n| not landed',
        file: 'cases/orchestration/landing_conflict/landing_conflict.toml',
        line: 7,
      },
    ],
    steps: [
      { name: 'worker_a', exitCode: 0, output: '\u001B[32mlanded\u001B[39m\n' },
      { name: 'worker_b', exitCode: 6, output: '  ::warning::gotcha\n##[error]not <landed> ]]> & gone\n' },
    ],
  }),
  caseResult({
    name: 'new',
    group: '',
    status: 'recorded',
    durationMs: 65_000,
    notes: ['2 sessions, 3 tapes'],
  }),
  caseResult({ name: 'changed', status: 'accepted', durationMs: 12 }),
  caseResult({ name: 'later', status: 'skipped', durationMs: 0, notes: ['needs git 2.38'] }),
];

export function reported(
  name: ReporterName,
  results: readonly CaseResult[],
  options: Partial<Omit<TestReporterOptions, 'write'>> = {},
): string {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  reportTo(createTestReporter(name, { write, color: false, columns: 80, ...options }), results);
  return text;
}

function reportTo(reporter: TestReporter, results: readonly CaseResult[]): void {
  reporter.onStart?.(results);
  for (const result of results) reporter.onCase?.(result);
  reporter.onEnd?.(summaryOf(results));
}
