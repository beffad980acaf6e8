import { ignoredFolders } from '../../project/index.ts';
import { shellWord } from '../../terminal/index.ts';
import { safeLine } from '../../view/index.ts';

/** Outcome for one file. */
export interface FileOutcome {
  /** Path relative to the root of the repository. */
  readonly path: string;
  readonly outcome: 'made' | 'overwritten' | 'same' | 'kept' | 'differs' | 'skipped';
  readonly why?: string | undefined;
}

export interface InitReport {
  /** Root of the repository. */
  readonly root: string;
  readonly isDryRun: boolean;
  readonly files: readonly FileOutcome[];
  /** File that makes git ignore the folders of Reprise. Absent on a dry run, or if it could not be written. */
  readonly excludedBy?: string | undefined;
  /** Files that git ignores. */
  readonly ignored: readonly string[];
  /** Whether all files are committed. */
  readonly isCommitted: boolean;
  readonly hasCommit: boolean;
  readonly notes: readonly string[];
}

export const reportJson = (report: InitReport, next: readonly string[]): object => ({
  root: report.root,
  dry_run: report.isDryRun,
  files: report.files.map(({ path, outcome, why }) => ({ path, outcome, ...(why ? { why } : {}) })),
  excluded_by: report.excludedBy ?? null,
  ignored: report.ignored,
  notes: report.notes,
  next,
});

/** `shown` turns a path relative to the root into one relative to the current folder. */
export function reportLines(
  report: InitReport,
  { shown, next }: { readonly shown: (path: string) => string; readonly next: readonly string[] },
): readonly string[] {
  const { files, isDryRun, excludedBy, ignored, notes } = report;
  const isDone = files.every(({ outcome }) => ['same', 'kept', 'skipped'].includes(outcome));
  const top = shown('.');
  const folders = ignoredFolders.join(' and ');
  const exclusion = excludedBy
    ? `git ignores ${folders} through ${safeLine(excludedBy)}; .gitignore was not changed`
    : `could not make git ignore ${folders}: add it to .git/info/exclude or .gitignore`;
  return [
    ...(top === '.' ? [] : [safeLine(`in the root of the repository, ${top}:`)]),
    ...files.map(file => safeLine(fileLine(file, { shown, isDryRun }))),
    ...(isDone ? ['nothing to create'] : []),
    ...(isDryRun ? [] : [exclusion]),
    ...ignoredNote(ignored.map(shown)),
    ...notes.map(note => safeLine(`note: ${note}`)),
    ...(isDryRun && !isDone ? ['nothing was changed; to create the files: reprise init'] : []),
    ...(isDryRun ? [] : ['', 'Next:', ...next.map((line, index) => `  ${index + 1}. ${line}`)]),
  ];
}

function ignoredNote(paths: readonly string[]): readonly string[] {
  const [first] = paths;
  if (first === undefined) return [];
  const verdict = `so \`git add\` skips ${paths.length === 1 ? 'it' : 'them'}`;
  const why = `git check-ignore -v --no-index ${shellWord(first)}`;
  return [safeLine(`note: git ignores ${paths.join(', ')}, ${verdict}; see why: ${why}`)];
}

function fileLine(
  { path, outcome, why }: FileOutcome,
  { shown, isDryRun }: { readonly shown: (path: string) => string; readonly isDryRun: boolean },
): string {
  const name = shown(path);
  switch (outcome) {
    case 'made':
      return `${isDryRun ? 'would create' : 'created'} ${name}`;
    case 'overwritten':
      return `${isDryRun ? 'would overwrite' : 'overwrote'} ${name}`;
    case 'same':
      return `skipped ${name}: it exists already`;
    case 'differs':
      return `would ask about ${name}: it exists and differs`;
    case 'kept':
    case 'skipped':
      return `${outcome} ${name}: ${why}`;
  }
}

/** Next steps for the user, with the commands to type. */
export function nextSteps(
  { files, isCommitted, hasCommit }: Pick<InitReport, 'files' | 'isCommitted' | 'hasCommit'>,
  { shown, task }: { readonly shown: (path: string) => string; readonly task: string | undefined },
): readonly string[] {
  const isWritten = (path: string) =>
    files.some(file => file.path === path && (file.outcome === 'made' || file.outcome === 'overwritten'));
  const tops = [
    ...new Set(
      files.filter(({ outcome }) => outcome !== 'skipped').map(({ path }) => path.split('/')[0] ?? ''),
    ),
  ];
  const add = `git add ${tops.map(top => shellWord(shown(top))).join(' ')} && git commit -m "Set up Reprise"`;
  return [
    ...(isWritten('reprise.yaml')
      ? [`set your test command in ${safeLine(shown('reprise.yaml'))}: \`verify\` under \`workers\``]
      : []),
    ...(task === undefined ? [] : [`write a task: edit ${safeLine(shown(task))} and set \`state: ready\``]),
    ...(isCommitted
      ? []
      : [hasCommit ? `commit the files: ${add}` : `make the first commit, which workers start from: ${add}`]),
    'start a worker: reprise worker',
  ];
}
