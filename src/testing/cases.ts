import { resolve } from 'node:path';
import type { TestContext } from '../cases/context.ts';
import { type FoundCase, findCases, type Orphan } from '../cases/manifest/find.ts';
import { failureLines } from '../cases/reporters/default.ts';
import { type CaseFailure, type CaseResult, caseTitle } from '../cases/result.ts';
import { runCase } from '../cases/run-case.ts';
import type { SnapshotMode } from '../cases/snapshot/snapshot.ts';
import { orphanResult } from '../cases/test-command.ts';
import { RepriseError } from '../core/errors.ts';
import { painter } from '../terminal/text.ts';

/** A case as one test of any runner. */
export interface TestCase {
  /** `group/name`, as it is typed after `reprise test`. */
  readonly title: string;
  readonly name: string;
  /** The folders between the folder of all cases and its own. */
  readonly group: string;
  /** The case file, relative to the current folder. */
  readonly file: string;
  /** Plays it from its tapes. Prints nothing. Rejects with a CaseFailedError. */
  run(): Promise<void>;
}

/** What `test` of Vitest and of Node's test runner have in common. */
export type DefineTest = (title: string, body: () => Promise<void>) => unknown;

export interface CasesOptions {
  /** Where cases are, relative to the current folder; `cases` unless it is said. */
  readonly folder?: string | undefined;
  /** Names, `group/name`, patterns such as `landing/*`, and paths; all cases unless it is said. */
  readonly names?: readonly string[] | undefined;
  /** Called for each case; without it, only the list is given. */
  readonly test?: DefineTest | undefined;
  /** Takes the snapshots as they come out now; `REPRISE_ACCEPT=1` unless it is said. Refused in CI. */
  readonly accept?: boolean | undefined;
}

/** Throws CASE_NOT_FOUND if there are none, and USAGE if snapshots are to be accepted in CI. */
export function listCases(options: CasesOptions, context: TestContext): readonly TestCase[] {
  const { folder = 'cases', names = [], test } = options;
  const mode = snapshotMode(options, context);
  const { cases, orphans } = findCases({ names, cwd: context.cwd, folder });
  if (cases.length === 0 && orphans.length === 0) {
    throw new RepriseError('CASE_NOT_FOUND', `there are no test cases in ${folder}/`, {
      hint: 'make one of a run: reprise capture <run> <name>',
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

/** Nobody would ever look at recordings that no case claims. */
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
    throw new RepriseError('USAGE', 'accepting snapshots is refused in CI, where nothing is written', {
      hint: 'do it on a machine of your own, look at what has changed, and commit it',
    });
  }
  return isAccepting ? 'accept' : isCi ? 'ci' : 'check';
}

/**
 * A case that failed. The message is what `reprise test` prints of it. `expected` and `actual` hold the parts of the
 * snapshot that differ, for editors that show the two side by side.
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
    // Where it was thrown helps nobody; runners show the code around the first line of the stack.
    this.stack = `${this.name}: ${this.message}\n    at ${place}:${failure?.line ?? 1}:1`;
    const sides = sidesOf(result.failures);
    // The difference is in the message: runners that print all fields, or make one of the two, would say it again.
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
