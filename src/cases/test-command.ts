import { RepriseError } from '../core/index.ts';
import { removeLeftovers } from '../process/index.ts';
import { type CommandIo, exitCodes, styleOf, writeLines } from '../project/index.ts';
import type { TestContext } from './context.ts';
import { findCases, type Orphan } from './manifest/find.ts';
import { createTestReporter, type ReporterName } from './reporters/reporters.ts';
import { type CaseResult, summaryOf } from './result.ts';
import { runCase } from './run-case.ts';

export interface TestCommandOptions {
  readonly names: readonly string[];
  readonly record?: boolean | undefined;
  /** Name of the only command of the case to record. */
  readonly step?: string | undefined;
  readonly accept?: boolean | undefined;
  readonly reporter?: ReporterName | undefined;
}

/** Replays test cases, or performs them for real to record them. Never writes files in CI. */
export async function testCommand(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  options: TestCommandOptions,
): Promise<number> {
  const { names, record = false, step, accept = false, reporter: reporterName = 'default' } = options;
  const isCi = Boolean(io.env['CI']) && io.env['CI'] !== 'false' && io.env['CI'] !== '0';
  if (isCi && (record || accept)) {
    throw new RepriseError(
      'USAGE',
      `--${record ? 'record' : 'accept'} is refused in CI, because CI never writes files`,
      {
        hint: 'run it locally, review the changes, and commit them',
      },
    );
  }
  if (step !== undefined && !record) {
    throw new RepriseError('USAGE', '--step selects the command to record again and requires --record', {
      hint: `reprise test ${names.join(' ') || '<case>'} --record --step ${step}`,
    });
  }
  const { cases, orphans } = findCases({ names, cwd: io.cwd });
  if (step !== undefined && cases.length !== 1) {
    throw new RepriseError('USAGE', `--step applies to a single case, but ${cases.length} are selected`, {
      hint: `name the case: reprise test <case> --record --step ${step}`,
    });
  }
  if (cases.length === 0 && orphans.length === 0) {
    throw new RepriseError('CASE_NOT_FOUND', 'there are no test cases in cases/', {
      hint: 'create one from a run: reprise capture <run> <name>',
    });
  }
  removeLeftovers();
  const reporter = createTestReporter(reporterName, { write: text => io.out(text), ...styleOf(io, 'out') });
  const began = performance.now();
  reporter.onStart?.(cases.map(({ name, group, displayFile: file }) => ({ name, group, file })));
  const results: CaseResult[] = [];
  const report = (result: CaseResult) => {
    results.push(result);
    reporter.onCase?.(result);
  };
  const snapshots = accept ? 'accept' : isCi ? 'ci' : 'check';
  for (const found of cases) {
    if (io.interrupt.aborted) break;
    report(await runCase(found, { record, step, snapshots }, context));
  }
  if (names.length === 0) orphans.map(orphanResult).forEach(report);
  const summary = summaryOf(results, performance.now() - began);
  reporter.onEnd?.(summary);
  if (io.interrupt.aborted) writeLines(io.err, 'stopped before all cases were run');
  if (io.interrupt.aborted) return Math.max(summary.exitCode, exitCodes.failed);
  const isNothingRecorded = record && summary.skipped === summary.total;
  return isNothingRecorded ? exitCodes.usage : summary.exitCode;
}

/** Returns the failure for a folder with recordings but without a case file. */
export function orphanResult({ displayFolder, files, misnamed }: Orphan): CaseResult {
  return {
    name: displayFolder,
    group: '',
    file: displayFolder,
    status: 'failed',
    durationMs: 0,
    failures: [
      {
        kind: 'left-over',
        message: `${displayFolder} holds recordings without a case file: ${files.join(', ')}`,
        hint: misnamed
          ? `rename ${misnamed}: a case file has the name of its folder`
          : `write the case file, or remove the folder: git rm -r ${displayFolder}`,
        file: displayFolder,
      },
    ],
    notes: [],
    steps: [],
  };
}
