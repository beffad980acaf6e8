import { type ExitCode, exitCodes } from '../project/index.ts';

/** How one case of a test run ended. */
export type CaseStatus = 'passed' | 'failed' | 'recorded' | 'accepted' | 'skipped';

/** What went wrong in a case. */
export type FailureKind =
  /** The replay asked for something else than was recorded. */
  | 'diverged'
  | 'snapshot'
  | 'expectation'
  /** Fewer lanes were alive at once, or changed places, than in the recording. */
  | 'witness'
  | 'trigger'
  /** A secret or a path of this machine was about to be written. */
  | 'leak'
  /** Entries or files that nothing asked for. */
  | 'left-over'
  | 'definition'
  | 'timeout'
  | 'error'
  /** Another order, or a crash, breaks something. */
  | 'race'
  /** The recording is older than what it was made from. */
  | 'stale';

export interface CaseFailure {
  readonly kind: FailureKind;
  /** What happened, for a person; the first line says it alone. */
  readonly message: string;
  /** What to type or change next, one a line. */
  readonly hint?: string | undefined;
  /** Relative to where the tests were started. */
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly diff?: string | undefined;
  /** The step of the case, if it is the failure of one. */
  readonly step?: string | undefined;
}

interface CaseStepResult {
  readonly name: string;
  /** `null` if it was killed before it had one. */
  readonly exitCode: number | null;
  readonly output: string;
}

export interface CaseResult {
  readonly name: string;
  /** The folders between `cases/` and the folder of the case; empty without any. */
  readonly group: string;
  /** The case file, relative to where the tests were started. */
  readonly file: string;
  readonly status: CaseStatus;
  readonly durationMs: number;
  readonly failures: readonly CaseFailure[];
  /** What is worth saying about a case that is not a failure. */
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

/** Follows a test run. It writes where it was told to when it was made, and never fails a case. */
export interface TestReporter {
  onStart?(cases: readonly CaseName[]): void;
  onCase?(result: CaseResult): void;
  onEnd?(summary: TestSummary): void;
}

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
