import { ignoredFolders } from '../../project/project.ts';
import { shellWord } from '../../terminal/words.ts';
import { safeLine } from '../../view/safe-text.ts';

/** What became of one file. */
export interface FileOutcome {
  /** Relative to the top of the repository. */
  readonly path: string;
  readonly outcome: 'made' | 'overwritten' | 'same' | 'kept' | 'differs' | 'skipped';
  readonly why?: string | undefined;
}

export interface InitReport {
  /** Top of the repository. */
  readonly root: string;
  readonly isDryRun: boolean;
  readonly files: readonly FileOutcome[];
  /** The file that keeps git from seeing what Reprise writes; absent if it could not be written, or was not tried. */
  readonly excludedBy?: string | undefined;
  /** Files that git would not add. */
  readonly ignored: readonly string[];
  /** Files that have changes which no commit has. */
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

/** `shown` is a path below the top as somebody in the current folder would type it. */
export function reportLines(
  report: InitReport,
  { shown, next }: { readonly shown: (path: string) => string; readonly next: readonly string[] },
): readonly string[] {
  const { files, isDryRun, excludedBy, ignored, notes } = report;
  const isDone = files.every(({ outcome }) => ['same', 'kept', 'skipped'].includes(outcome));
  const top = shown('.');
  const folders = ignoredFolders.join(' and ');
  const exclusion = excludedBy
    ? `git ignores ${folders} through ${safeLine(excludedBy)}; .gitignore was not touched`
    : `git could not be told to ignore ${folders}: add them to .git/info/exclude or .gitignore`;
  return [
    ...(top === '.' ? [] : [safeLine(`at the top of the repository, ${top}:`)]),
    ...files.map(file => safeLine(fileLine(file, { shown, isDryRun }))),
    ...(isDone ? ['there is nothing to make'] : []),
    ...(isDryRun ? [] : [exclusion]),
    ...ignoredNote(ignored.map(shown)),
    ...notes.map(note => safeLine(`note: ${note}`)),
    ...(isDryRun && !isDone ? ['nothing was changed; do it: reprise init'] : []),
    ...(isDryRun ? [] : ['', 'Next:', ...next.map((line, index) => `  ${index + 1}. ${line}`)]),
  ];
}

function ignoredNote(paths: readonly string[]): readonly string[] {
  const [first] = paths;
  if (first === undefined) return [];
  const verdict = `so ${paths.length === 1 ? 'it' : 'they'} cannot be committed as usual`;
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
      return `${isDryRun ? 'would make' : 'made'} ${name}`;
    case 'overwritten':
      return `${isDryRun ? 'would overwrite' : 'overwrote'} ${name}`;
    case 'same':
      return `skipped ${name}: it is there already`;
    case 'differs':
      return `would ask about ${name}: it is there, and differs`;
    case 'kept':
    case 'skipped':
      return `${outcome} ${name}: ${why}`;
  }
}

/** What to do now, in the words to type where there are any. */
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
      ? [`say in ${safeLine(shown('reprise.yaml'))} what tests this project: \`verify\` under \`workers\``]
      : []),
    ...(task === undefined
      ? []
      : [`write a task: edit ${safeLine(shown(task))}, and set \`state: ready\` once it can be done`]),
    ...(isCommitted
      ? []
      : [hasCommit ? `commit it: ${add}` : `make the first commit, which workers begin from: ${add}`]),
    'start a worker: reprise worker',
  ];
}
