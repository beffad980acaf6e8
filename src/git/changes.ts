import type { Git } from './git.ts';

export type ChangeKind = 'added' | 'copied' | 'deleted' | 'modified' | 'renamed' | 'type-changed' | 'other';

export interface FileChange {
  readonly kind: ChangeKind;
  readonly path: string;
  /** Where a renamed or copied file was. */
  readonly from?: string | undefined;
}

export interface Changes {
  readonly files: readonly FileChange[];
  readonly insertions: number;
  readonly deletions: number;
  /** For people to read, up to the limit; binary files are named only. */
  readonly patch: { readonly text: string; readonly truncated: boolean };
}

export interface ChangesOptions {
  /** The commit to compare with what is checked out. */
  readonly base: string;
  readonly patchLimit?: number | undefined;
}

const kinds: Readonly<Record<string, ChangeKind>> = {
  A: 'added',
  C: 'copied',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type-changed',
};

/** What the commits of a workspace changed since they began. Throws GIT_FAILED if the base is no commit. */
export async function changesSince(
  git: Git,
  { base, patchLimit = 1024 * 1024 }: ChangesOptions,
): Promise<Changes> {
  const diff = ['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames'];
  const range = ['--end-of-options', base, 'HEAD', '--'];
  const [names, stat, patch] = await Promise.all([
    git.ok([...diff, '--name-status', '-z', ...range]),
    git.ok([...diff, '--shortstat', ...range]),
    git.ok([...diff, '--patch', '--src-prefix=a/', '--dst-prefix=b/', ...range]),
  ]);
  return {
    files: parseNameStatus(names),
    insertions: countOf(stat, /(\d+) insertion/),
    deletions: countOf(stat, /(\d+) deletion/),
    patch: { text: patch.slice(0, patchLimit), truncated: patch.length > patchLimit },
  };
}

export interface ChangeCounts {
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
}

/** How much changed since the commits of a workspace began, without what. */
export async function changeCounts(git: Git, base: string): Promise<ChangeCounts> {
  const diff = ['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--shortstat'];
  return countsIn(await git.ok([...diff, '--end-of-options', base, 'HEAD', '--']));
}

/**
 * How much changed in a commit, as `git commit` itself says. `undefined` where it counts in another way than `git diff`:
 * a file that was written anew counts there with all of its lines, also as the source of a rename.
 */
export function printedCounts(printed: string): ChangeCounts | undefined {
  const line = /^ \d+ files? changed.*$/m.exec(printed)?.[0];
  return line === undefined || /^ (rewrite|rename|copy) /m.test(printed) ? undefined : countsIn(line);
}

const countsIn = (stat: string): ChangeCounts => ({
  files: countOf(stat, /(\d+) file/),
  insertions: countOf(stat, /(\d+) insertion/),
  deletions: countOf(stat, /(\d+) deletion/),
});

function parseNameStatus(output: string): readonly FileChange[] {
  const fields = output.split('\0');
  const files: FileChange[] = [];
  for (let at = 0; at + 1 < fields.length; ) {
    const kind = kinds[fields[at]?.charAt(0) ?? ''] ?? 'other';
    const two = kind === 'renamed' || kind === 'copied';
    const [first = '', second = ''] = fields.slice(at + 1, at + 3);
    files.push(two ? { kind, path: second, from: first } : { kind, path: first });
    at += two ? 3 : 2;
  }
  return files;
}

const countOf = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);
