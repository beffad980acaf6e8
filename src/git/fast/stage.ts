import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { doubtfulFiles } from '../doubtful-files.ts';
import type { Git } from '../git.ts';
import { type GitFolders, type Head, headInFiles } from '../refs.ts';
import { setAge, trustIndex } from '../side-index.ts';
import { editIndex, type IndexFile, parseIndex } from './index-file.ts';

export interface QuickStaging {
  /** At the top of the worktree. */
  readonly git: Git;
  readonly folders: GitFolders;
  readonly index: string;
  /** Where the index goes that holds everything. */
  readonly beside: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stages everything beside the index with one process that does not read again what was just checked out. Gives what is
 * checked out; `undefined` if there is nothing to stage, or anything about it has to be looked at more closely.
 */
export async function stageQuickly(staging: QuickStaging): Promise<Head | undefined> {
  const { git, folders, index, beside, signal } = staging;
  const head = headInFiles(folders);
  const stat = statSync(index, { bigint: true, throwIfNoEntry: false });
  if (head === undefined || stat === undefined) return undefined;
  const oidBytes = head.commit.length / 2;
  const bytes = readFileSync(index);
  const before = parseIndex(bytes, oidBytes);
  if (before === undefined || isSpecial(before)) return undefined;
  const seen = before.entries.filter(entry => !entry.isAssumedUnchanged && !entry.isSkipped);
  const changed = doubtfulFiles({ bytes, entries: seen, folder: git.cwd, written: stat.mtimeNs });
  writeFileSync(beside, editIndex(bytes, { show: [], forget: changed }, oidBytes));
  trustIndex(beside);
  const side = git.with({ env: { GIT_INDEX_FILE: beside } });
  const { code, stdout } = await side.run(['add', '--all', '--verbose'], { signal });
  if (code !== 0 || stdout === '') return undefined;
  const after = parseIndex(readFileSync(beside), oidBytes);
  if (after === undefined || hasNewGitlink(before, after)) return undefined;
  // As old as it was: whoever looks next reads again what something may have changed since we looked.
  setAge(beside, Number(stat.mtimeMs));
  return head;
}

const isSpecial = ({ entries, isSplit, isSparse }: IndexFile): boolean =>
  isSplit || isSparse || entries.some(({ isUnmerged }) => isUnmerged);

function hasNewGitlink(before: IndexFile, after: IndexFile): boolean {
  const gitlinks = ({ entries }: IndexFile) =>
    entries.filter(({ isGitlink }) => isGitlink).map(({ path }) => path);
  const known = new Set(gitlinks(before));
  return gitlinks(after).some(path => !known.has(path));
}
