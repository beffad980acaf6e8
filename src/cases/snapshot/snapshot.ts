import { rename, rm, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ConductedWorld } from '../../effects/conductor/index.ts';
import { readRecordedText } from '../../effects/index.ts';
import type { RecordedEntry } from '../../effects/recording/index.ts';
import { shellWord, tableLines } from '../../terminal/index.ts';
import { safeLine } from '../../view/index.ts';
import { stagePaths } from '../context.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { isGitReal } from '../perform/failures.ts';
import type { PlayedStep } from '../perform/perform.ts';
import { type Stage, stageHistory, stageResult } from '../perform/stage.ts';
import type { CaseFailure } from '../result.ts';
import { compareSnapshot } from './diff.ts';
import { normaliseSnapshot, outputLines } from './normalise.ts';
import { timelineLines } from './timeline.ts';

interface SnapshotStep {
  readonly name: string;
  /** Unmodified output. */
  readonly output: string;
  readonly exitCode: number | null;
  /** Whether the case killed the command before it had an exit code. */
  readonly killed?: boolean | undefined;
}

/** State of the repository after the last command. */
export interface SnapshotResult {
  /** Subjects of the commits on main, oldest first. */
  readonly main: readonly string[];
  readonly tasks?: readonly { readonly name: string; readonly status: string }[] | undefined;
  /** Worktrees other than the checkout itself. */
  readonly worktrees: readonly string[];
  /** Branches other than main. */
  readonly branches: readonly string[];
}

interface SnapshotParts {
  /** Commands in the order of the case file. */
  readonly steps: readonly SnapshotStep[];
  /** Result, absent if git was not real and the repository is therefore unchanged. */
  readonly result?: SnapshotResult | undefined;
  /** Tape entries for the timeline, in order. Without them, the snapshot has no timeline. */
  readonly timeline?: readonly RecordedEntry[] | undefined;
}

/** Composes a snapshot: a section for each command, the result, and an optional timeline. */
export function composeSnapshot({ steps, result, timeline }: SnapshotParts): string {
  const sections = [
    ...steps.map(step => section(step.name, [...outputLines(step.output), ...endLines(step)])),
    ...(result ? [section('result', resultLines(result))] : []),
    ...(timeline ? [section('timeline', timelineLines(timeline))] : []),
  ];
  return `${sections.join('\n\n')}\n`;
}

const section = (name: string, lines: readonly string[]): string =>
  [`--- ${safeLine(name)} ---`, ...lines].join('\n');

function endLines({ exitCode, killed }: SnapshotStep): readonly string[] {
  if (killed) return ['killed'];
  return exitCode === 0 ? [] : [exitCode === null ? 'no exit code' : `exit ${exitCode}`];
}

function resultLines({ main, tasks = [], worktrees, branches }: SnapshotResult): readonly string[] {
  return [
    ...listLines('main', main.map(safeLine)),
    ...(tasks.length === 0 ? [] : ['tasks:', ...taskLines(tasks)]),
    ...listLines('worktrees left', worktrees.map(safeLine)),
    ...listLines('branches left', branches.map(safeLine)),
  ];
}

const listLines = (title: string, items: readonly string[]): readonly string[] =>
  items.length === 0 ? [`${title}: none`] : [`${title}:`, ...items.map(item => `  ${item}`.trimEnd())];

const taskLines = (tasks: NonNullable<SnapshotResult['tasks']>): readonly string[] =>
  tableLines(
    tasks.map(({ name, status }) => [{ text: safeLine(name) }, { text: safeLine(status) }]),
    {
      columns: [{}, {}],
      width: Number.POSITIVE_INFINITY,
      paint: (_, text) => text,
      ellipsis: '…',
      indent: '  ',
    },
  );

/** `check` compares and writes a new snapshot beside the old one, `accept` replaces it, `ci` compares only. */
export type SnapshotMode = 'check' | 'accept' | 'ci';

interface SnapshotCheck {
  /** Path of the snapshot, which may not exist yet. */
  readonly file: string;
  readonly actual: string;
  readonly mode: SnapshotMode;
  /** Argument for `reprise test`. Defaults to the name of the file. */
  readonly caseName?: string | undefined;
  /** Path for messages. Defaults to `file`. */
  readonly displayFile?: string | undefined;
}

type SnapshotVerdict =
  | { readonly kind: 'equal' }
  | { readonly kind: 'accepted'; readonly before: 'missing' | 'different' }
  | { readonly kind: 'failed'; readonly failure: CaseFailure };

/** Compares a snapshot with the one on disk. */
export async function checkSnapshot(check: SnapshotCheck): Promise<SnapshotVerdict> {
  const { file, actual, mode } = check;
  const fresh = `${file}.new`;
  const expected = await readIfThere(file);
  const comparison = expected === undefined ? undefined : compareSnapshot({ expected, actual });
  if (comparison?.equal) {
    if (mode !== 'ci') await rm(fresh, { force: true });
    return { kind: 'equal' };
  }
  if (mode !== 'ci') await writeFile(fresh, actual);
  if (mode === 'accept') {
    await rename(fresh, file);
    return { kind: 'accepted', before: comparison ? 'different' : 'missing' };
  }
  return { kind: 'failed', failure: comparison ? differs(check, comparison) : isMissing(check) };
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return readRecordedText({ file });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

const differs = (
  check: SnapshotCheck,
  { diff, removed, added }: { readonly diff: string; readonly removed: number; readonly added: number },
): CaseFailure => ({
  kind: 'snapshot',
  message: `the snapshot differs: -${removed} +${added} lines`,
  diff,
  file: nameOf(check),
  line: firstLineOf(diff),
  hint: `if the new snapshot is correct: ${acceptCommand(check)}${whereItIs(check)}`,
});

const isMissing = (check: SnapshotCheck): CaseFailure => ({
  kind: 'snapshot',
  message: `the snapshot ${nameOf(check)} does not exist yet`,
  file: nameOf(check),
  hint: `review the new snapshot and accept it: ${acceptCommand(check)}${whereItIs(check)}`,
});

const nameOf = ({ file, displayFile = file }: SnapshotCheck): string => displayFile;

const acceptCommand = ({ file, caseName = basename(file).replace(/\.snap$/, '') }: SnapshotCheck): string =>
  `reprise test ${shellWord(caseName)} --accept`;

const whereItIs = (check: SnapshotCheck): string =>
  check.mode === 'ci'
    ? '\nthen commit it, because CI never writes files'
    : `\nthe new snapshot: ${nameOf(check)}.new`;

/** Returns the line of the first difference in the snapshot. */
function firstLineOf(diff: string): number {
  const [head = '', ...lines] = diff.split('\n');
  const start = Number(/^@@ -(\d+)/.exec(head)?.[1] ?? 1);
  const same = lines.findIndex(line => !line.startsWith(' ') && line !== '');
  return Math.max(1, start + Math.max(0, same));
}

interface ComposedCase {
  readonly manifest: CaseManifest;
  readonly played: readonly PlayedStep[];
  readonly entries: readonly RecordedEntry[];
}

/** Composes the snapshot of a performed case. */
export async function composeCase(
  stage: Stage,
  { manifest, played, entries }: ComposedCase,
): Promise<string> {
  const runIds = runIdsOf(entries);
  const history = await stageHistory(stage);
  const main = manifest.base?.branch ?? 'main';
  const result = isGitReal(manifest) ? await stageResult(stage, { main, history }) : undefined;
  const text = composeSnapshot({
    steps: played.map(({ step, output, end }) => ({
      name: step.name,
      output,
      exitCode: end.kind === 'exited' ? end.code : null,
      killed: end.kind === 'killed',
    })),
    result: result && inOrderOfRuns(result, { played, runIds }),
    timeline: manifest.timeline ? entries : undefined,
  });
  const shas = [...history.commits.keys()];
  return normaliseSnapshot(text, { paths: stagePaths(stage), shas, runIds });
}

/** Sorts names that contain random run ids by the position at which the output first mentions the run. */
function inOrderOfRuns(
  result: SnapshotResult,
  { played, runIds }: { readonly played: readonly PlayedStep[]; readonly runIds: readonly string[] },
): SnapshotResult {
  const outputs = played.map(({ output }) => output).join('\n');
  const mentioned = runIds.toSorted((a, b) => outputs.indexOf(a) - outputs.indexOf(b));
  const sortable = (name: string) =>
    mentioned.reduce((text, id, index) => text.replaceAll(id, String(index).padStart(6, '0')), name);
  const sorted = (names: readonly string[]) => names.toSorted((a, b) => (sortable(a) < sortable(b) ? -1 : 1));
  return { ...result, worktrees: sorted(result.worktrees), branches: sorted(result.branches) };
}

const runIdsOf = (entries: readonly RecordedEntry[]): readonly string[] =>
  entries.flatMap(({ op, outcome }) =>
    op === 'ids.new' && outcome?.kind === 'ok'
      ? ((outcome.value as { readonly runId?: string }).runId ?? [])
      : [],
  );

/** Rejects if the performance is stopped, so that the caller does not wait for it forever. */
export const orStopped = <T>(played: Promise<T>, { stopped }: Pick<ConductedWorld, 'stopped'>): Promise<T> =>
  Promise.race([
    played,
    stopped.then(error => {
      throw error;
    }),
  ]);
