import { resolve } from 'node:path';
import {
  type CaseFailure,
  type CaseResult,
  caseTitle,
  failureLines,
  orphanResult,
  runCase,
  type SnapshotMode,
  type TestContext,
} from '../cases/index.ts';
import { type FoundCase, findCases, type Orphan } from '../cases/manifest/index.ts';
import { RepriseError } from '../core/index.ts';
import { painter } from '../terminal/index.ts';

/** A case as one test of a test runner. */
export interface TestCase {
  /** Name with its group, `group/name`, as in `reprise test group/name`. */
  readonly title: string;
  readonly name: string;
  /** Folders between the folder of all cases and that of the case. */
  readonly group: string;
  /** Path of the case file, relative to the current folder. */
  readonly file: string;
  /** Replays the case from its tapes. Prints nothing. Rejects with a `CaseFailedError`. */
  run(): Promise<void>;
}

/** The common signature of `test` in Vitest and in Node's test runner. */
export type DefineTest = (title: string, body: () => Promise<void>) => unknown;

export interface CasesOptions {
  /** Folder of all cases, relative to the current folder. Defaults to `cases`. */
  readonly folder?: string | undefined;
  /** Names, `group/name`, patterns such as `landing/*`, and paths. Defaults to all cases. */
  readonly names?: readonly string[] | undefined;
  /** Function that defines a test; called once for each case. Without it, the cases are only listed. */
  readonly test?: DefineTest | undefined;
  /** Whether to update snapshots. Defaults to `true` if `REPRISE_ACCEPT=1` is set. Refused in CI. */
  readonly accept?: boolean | undefined;
}

/** Lists cases as tests. Throws CASE_NOT_FOUND if there are none, and USAGE if snapshots would be updated in CI. */
export function listCases(options: CasesOptions, context: TestContext): readonly TestCase[] {
  const { folder = 'cases', names = [], test } = options;
  const mode = snapshotMode(options, context);
  const { cases, orphans } = findCases({ names, cwd: context.cwd, folder });
  if (cases.length === 0 && orphans.length === 0) {
    throw new RepriseError('CASE_NOT_FOUND', `no test cases in ${folder}/`, {
      hint: 'capture a run as a test case: reprise capture <run> <name>',
    });
  }
  const all = [
    ...cases.map(found => caseTest(found, mode, context)),
    ...(names.length === 0 ? orphans.map(orphan => orphanTest(orphan, context)) : []),
  ];
  if (test) for (const { title, run } of all) test(title, () => run());
  return all;
}

function caseTest(found: FoundCase, snapshots: SnapshotMode, context: TestContext): TestCase {
  const { name, group, displayFile: file } = found;
  const run = async () => orThrow(await runCase(found, { record: false, snapshots }, context), context);
  return { title: caseTitle(found), name, group, file, run };
}

/** A test that fails: recordings without a case file would never be noticed otherwise. */
function orphanTest(orphan: Orphan, context: TestContext): TestCase {
  const { displayFolder } = orphan;
  const run = async () => orThrow(orphanResult(orphan), context);
  return { title: displayFolder, name: displayFolder, group: '', file: displayFolder, run };
}

function orThrow(result: CaseResult, { cwd }: TestContext): void {
  if (result.status === 'failed') throw new CaseFailedError(result, cwd);
}

const isOn = (value: string | undefined): boolean => Boolean(value) && value !== 'false' && value !== '0';

function snapshotMode({ accept }: CasesOptions, { env }: TestContext): SnapshotMode {
  const isCi = isOn(env['CI']);
  const isAccepting = accept ?? isOn(env['REPRISE_ACCEPT']);
  if (isCi && isAccepting) {
    throw new RepriseError('USAGE', 'updating snapshots is refused in CI, because CI never writes files', {
      hint: 'update them on your machine, review the changes, and commit them',
    });
  }
  return isAccepting ? 'accept' : isCi ? 'ci' : 'check';
}

/**
 * A failed case. The message is the one that `reprise test` prints. `expected` and `actual` hold the differing parts of the
 * snapshot, for editors that show them side by side.
 */
export class CaseFailedError extends Error {
  override readonly name = 'CaseFailedError';
  readonly failures: readonly CaseFailure[];
  declare readonly expected: string | undefined;
  declare readonly actual: string | undefined;

  constructor(result: CaseResult, cwd: string) {
    super(textOf(result));
    this.failures = result.failures;
    const [failure] = result.failures;
    const place = resolve(cwd, failure?.file ?? result.file);
    // Runners show the code around the first stack frame, so it points at the failing file rather than at this class.
    this.stack = `${this.name}: ${this.message}\n    at ${place}:${failure?.line ?? 1}:1`;
    const sides = sidesOf(result.failures);
    // The message contains the diff. Runners that print all fields, or build their own diff, would repeat it.
    for (const [name, value] of Object.entries({ failures: this.failures, ...sides, showDiff: false }))
      Object.defineProperty(this, name, { value, enumerable: false });
  }
}

function textOf(result: CaseResult): string {
  const plain = painter(false);
  return result.failures.map(failure => failureLines(result, failure, plain).join('\n')).join('\n\n');
}

function sidesOf(failures: readonly CaseFailure[]): { readonly expected?: string; readonly actual?: string } {
  const diff = failures.find(failure => failure.kind === 'snapshot')?.diff;
  if (diff === undefined) return {};
  const lines = diff
    .replace(/\n$/, '')
    .split('\n')
    .filter(line => !line.startsWith('@@'));
  const without = (sign: string) =>
    lines
      .filter(line => !line.startsWith(sign))
      .map(line => line.slice(1))
      .join('\n');
  return { expected: without('+'), actual: without('-') };
}
