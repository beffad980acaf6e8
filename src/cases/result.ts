import { type ExitCode, exitCodes } from '../project/index.ts';

/** Status of a case after a test run. */
export type CaseStatus = 'passed' | 'failed' | 'recorded' | 'accepted' | 'skipped';

/** Kind of failure of a case. */
export type FailureKind =
  /** The replay does not match the recording. */
  | 'diverged'
  | 'snapshot'
  | 'expectation'
  /** Fewer lanes ran in parallel, or lanes switched less often, than in the recording. */
  | 'witness'
  | 'trigger'
  /** A recording would contain a secret or a local path. */
  | 'leak'
  /** The replay did not request all entries or files. */
  | 'left-over'
  | 'definition'
  | 'timeout'
  | 'error'
  /** Another order or a crash breaks the case. */
  | 'race'
  /** A prompt or script has changed since it was recorded. */
  | 'stale';

export interface CaseFailure {
  readonly kind: FailureKind;
  /** Message for people. Its first line makes sense on its own. */
  readonly message: string;
  /** Next steps, one per line. */
  readonly hint?: string | undefined;
  /** Path relative to the working directory. */
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly diff?: string | undefined;
  /** Name of the command that failed, if it was a single one. */
  readonly step?: string | undefined;
}

interface CaseStepResult {
  readonly name: string;
  /** Exit code, or `null` if the command was killed before it had one. */
  readonly exitCode: number | null;
  readonly output: string;
}

export interface CaseResult {
  readonly name: string;
  /** Folders between `cases/` and the folder of the case. May be empty. */
  readonly group: string;
  /** Path of the case file, relative to the working directory. */
  readonly file: string;
  readonly status: CaseStatus;
  readonly durationMs: number;
  readonly failures: readonly CaseFailure[];
  /** Remarks that are not failures. */
  readonly notes: readonly string[];
  readonly steps: readonly CaseStepResult[];
}

export interface CaseName {
  readonly name: string;
  readonly group: string;
  readonly file: string;
}

export interface TestSummary {
  readonly total: number;
  readonly passed: number;
  readonly failed: number;
  readonly recorded: number;
  readonly accepted: number;
  readonly skipped: number;
  readonly durationMs: number;
  readonly exitCode: number;
}

/** Reports the progress of a test run. Never affects the result of a case. */
export interface TestReporter {
  onStart?(cases: readonly CaseName[]): void;
  onCase?(result: CaseResult): void;
  onEnd?(summary: TestSummary): void;
}

/** Kinds of failures that mean that a replay does not match its recording. */
const divergences: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'diverged',
  'witness',
  'left-over',
  'stale',
]);

/** Summarizes a test run. `durationMs` defaults to the sum over all cases. */
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

/** Returns the exit code: divergence takes precedence over invalid case files, and those over other failures. */
function exitCodeOf(results: readonly CaseResult[]): ExitCode {
  const failed = results.filter(({ status }) => status === 'failed');
  const kinds = failed.flatMap(({ failures }) => failures.map(({ kind }) => kind));
  if (kinds.some(kind => divergences.has(kind))) return exitCodes.diverged;
  if (kinds.includes('definition')) return exitCodes.usage;
  return failed.length > 0 ? exitCodes.failed : exitCodes.ok;
}

/** Returns the argument for `reprise test`. */
export const caseTitle = ({ name, group }: Pick<CaseName, 'name' | 'group'>): string =>
  group === '' ? name : `${group}/${name}`;
