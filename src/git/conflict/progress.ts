import { join } from 'node:path';
import type { Owner } from '../../store/index.ts';
import type { Conflict, ListedCommit } from '../commits.ts';
import { parseRecord, readIfThere, recordFile, removeIfThere } from '../files.ts';
import type { LockPatience } from '../lock.ts';
import type { Repository } from '../repository.ts';
import type { ParkedRef } from '../workspace/branch-records.ts';
import { type ConflictedFile, type ConflictWorkspace, layOut, type MarkerLabels } from './lay-out.ts';

/**
 * Conflict that is laid out in a workspace, as data. The branch stays at its old tip until all of its conflicts are
 * resolved. An abort or a crash therefore loses nothing, and another landing hits the same conflict.
 */
export interface Resolution {
  readonly branch: string;
  /** Tip of the branch. */
  readonly tip: string;
  /** Commit that the branch is rebased onto. */
  readonly onto: string;
  /** Last commit that was replayed before the conflict. HEAD points to it. */
  readonly at: string;
  /** Commit that conflicts. */
  readonly commit: string;
  /** Subject of the commit that conflicts. */
  readonly subject: string;
  /** Whether the branch is replayed as one commit, because it contains merges. */
  readonly isWhole: boolean;
  /** Commits that are still to be replayed. */
  readonly rest: readonly ListedCommit[];
  /** Tree with the markers as git wrote them. */
  readonly tree: string;
  readonly files: readonly ConflictedFile[];
  readonly labels: MarkerLabels;
  /** Subjects of commits that became empty when their conflicts were resolved. */
  readonly dropped: readonly string[];
  /** Refs for work that would otherwise be unreachable. */
  readonly parked: readonly ParkedRef[];
}

export interface ResolvedConflict {
  readonly kind: 'resolved';
  readonly branch: string;
  /** New tip of the branch, based on the commit that it conflicted with. */
  readonly commit: string;
  readonly dropped: readonly string[];
  /** Parked refs. They include the old tip if commits were dropped or the agent moved the branch. */
  readonly parked: readonly ParkedRef[];
}

export interface ResolutionRequest extends LockPatience {
  readonly repository: Repository;
  readonly owner: Owner;
  /** Absolute path of the workspace. No other process may work in it. */
  readonly path: string;
  readonly signal?: AbortSignal | undefined;
}

/** Operation in progress in a workspace, with the data to repeat it after a crash. */
export type ResolutionProgress =
  | { readonly kind: 'laying-out'; readonly draft: ResolutionDraft }
  | { readonly kind: 'laid-out'; readonly resolution: Resolution }
  | Finishing;

export interface Finishing {
  readonly kind: 'finishing';
  /** Expected tip of the branch. */
  readonly from: string;
  readonly resolved: ResolvedConflict;
}

export type ResolutionDraft = Pick<Resolution, 'branch' | 'tip' | 'onto' | 'dropped' | 'parked'> & {
  readonly ontoName: string;
  readonly conflict: Conflict;
};

/** Returns the identity of a resolution. */
export const keyOf = ({ tip, onto, at, commit }: Resolution): string => [tip, onto, at, commit].join(' ');

/** Lays out a conflict. `after` is the key of the resolution before it, or empty for the first conflict. */
export async function layOutDraft(
  place: ConflictWorkspace,
  draft: ResolutionDraft,
  after: string,
): Promise<Resolution> {
  const { conflict, ontoName, ...begun } = draft;
  const { at, commit, subject, isWhole, rest, tree } = conflict;
  const labels = labelsOf(draft);
  writeMark<ResolutionProgress>(place.gitDir, { after, value: { kind: 'laying-out', draft } });
  const files = await layOut(place, conflict, labels);
  const resolution = { ...begun, at, commit, subject, isWhole, rest, tree, files, labels };
  writeMark<ResolutionProgress>(place.gitDir, { after, value: { kind: 'laid-out', resolution } });
  return resolution;
}

/** Returns the conflict in the workspace. Repeats a layout that a crash interrupted. */
export async function layOutAgain(
  place: ConflictWorkspace,
  progress: Exclude<ResolutionProgress, Finishing>,
): Promise<Resolution> {
  if (progress.kind === 'laid-out') return progress.resolution;
  return layOutDraft(place, progress.draft, readMark(place.gitDir)?.after ?? '');
}

/** Returns readable labels for the markers. */
export const labelsOf = ({ ontoName, conflict }: ResolutionDraft): MarkerLabels => ({
  ours: plain(ontoName),
  theirs: `${conflict.commit.slice(0, 10)} (${plain(conflict.subject)})`,
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes control characters
const plain = (text: string): string => text.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ');

/**
 * Write-ahead record of the last operation in a workspace with conflicts. A call that is repeated after a crash finds the
 * effect of the first call, instead of taking the next conflict for the resolution of the previous one.
 */
export interface ProgressMark<T> {
  /** Key of the resolution that the operation continues. Empty if it is the first conflict. */
  readonly after: string;
  readonly value: T;
}

const fileOf = (gitDir: string): string => join(gitDir, 'reprise-resolution.json');

/** Reads the mark that `writeMark` wrote. Returns `undefined` for any other content. */
export function readMark<T>(gitDir: string): ProgressMark<T> | undefined {
  const { after, value } = parseRecord(readIfThere(fileOf(gitDir))) ?? {};
  return typeof after === 'string' && value !== undefined ? { after, value: value as T } : undefined;
}

export const writeMark = <T>(gitDir: string, mark: ProgressMark<T>): void =>
  recordFile(fileOf(gitDir), `${JSON.stringify(mark)}\n`);

export const removeMark = (gitDir: string): void => removeIfThere(fileOf(gitDir));
