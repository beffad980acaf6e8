import type { CaseName, CaseResult, CaseStatus, FailureKind, TestSummary } from '../cases/result.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';

/** What a replay ends with that is not what was recorded. */
const divergences: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'diverged',
  'witness',
  'left-over',
  'stale',
]);

/** `durationMs` is how long it took for whoever waited; that of all cases together unless it is given. */
export function summaryOf(results: readonly CaseResult[], durationMs = totalOf(results)): TestSummary {
  const count = (status: CaseStatus) => results.filter(result => result.status === status).length;
  return {
    total: results.length,
    passed: count('passed'),
    failed: count('failed'),
    recorded: count('recorded'),
    accepted: count('accepted'),
    skipped: count('skipped'),
    durationMs,
    exitCode: exitCodeOf(results),
  };
}

const totalOf = (results: readonly CaseResult[]): number =>
  results.reduce((total, result) => total + result.durationMs, 0);

/** A replay that diverged says most, then a case file with a mistake in it, then everything else. */
function exitCodeOf(results: readonly CaseResult[]): ExitCode {
  const failed = results.filter(({ status }) => status === 'failed');
  const kinds = failed.flatMap(({ failures }) => failures.map(({ kind }) => kind));
  if (kinds.some(kind => divergences.has(kind))) return exitCodes.diverged;
  if (kinds.includes('definition')) return exitCodes.usage;
  return failed.length > 0 ? exitCodes.failed : exitCodes.ok;
}

/** As it is typed after `reprise test`. */
export const caseTitle = ({ name, group }: Pick<CaseName, 'name' | 'group'>): string =>
  group === '' ? name : `${group}/${name}`;
