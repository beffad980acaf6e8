import { join } from 'node:path';
import type { Owner } from '../../store/index.ts';
import type { Conflict, ListedCommit } from '../commits.ts';
import { parseRecord, readIfThere, replaceFile } from '../files.ts';
import type { LockRequest } from '../lock.ts';
import { removeIfThere } from '../lock-file.ts';
import type { Repository } from '../repository.ts';
import type { ParkedRef } from '../workspace/branch-records.ts';
import { type ConflictedFile, type ConflictWorkspace, layOut, type MarkerLabels } from './lay-out.ts';

/**
 * A conflict that lies in a workspace to be solved, as data. The branch stays at its old tip until all its conflicts are
 * solved, so that giving up or a crash loses nothing, and landing it meets the same conflict again.
 */
export interface Resolution {
  readonly branch: string;
  /** Where the branch is. */
  readonly tip: string;
  /** The commit on which its work is to be. */
  readonly onto: string;
  /** What had been replayed before the conflict, and HEAD is at. */
  readonly at: string;
  /** The commit that does not fit. */
  readonly commit: string;
  readonly subject: string;
  /** Not one commit: all that the branch has, because it holds merges. */
  readonly isWhole: boolean;
  readonly rest: readonly ListedCommit[];
  /** With the markers as git wrote them. */
  readonly tree: string;
  readonly files: readonly ConflictedFile[];
  readonly labels: MarkerLabels;
  /** Subjects of commits of which nothing was left once they were solved. */
  readonly dropped: readonly string[];
  /** What nothing else would have pointed to. */
  readonly parked: readonly ParkedRef[];
}

export interface ResolvedConflict {
  readonly kind: 'resolved';
  readonly branch: string;
  /** Where the branch is now: on top of the commit that it conflicted with. */
  readonly commit: string;
  readonly dropped: readonly string[];
  /** The old tip is among them if commits were dropped, or if somebody moved the branch himself. */
  readonly parked: readonly ParkedRef[];
}

export interface ResolutionRequest {
  readonly repository: Repository;
  readonly owner: Owner;
  /** Of a workspace that nobody else works in. */
  readonly path: string;
  readonly signal?: AbortSignal | undefined;
  readonly onWait?: LockRequest['onWait'];
}

/** What is being done in a workspace, so that it can be done again. */
export type ResolutionProgress =
  | { readonly kind: 'laying-out'; readonly draft: ResolutionDraft }
  | { readonly kind: 'laid-out'; readonly resolution: Resolution }
  | Finishing;

export interface Finishing {
  readonly kind: 'finishing';
  /** Where the branch was. */
  readonly from: string;
  readonly resolved: ResolvedConflict;
}

export type ResolutionDraft = Pick<Resolution, 'branch' | 'tip' | 'onto' | 'dropped' | 'parked'> & {
  readonly ontoName: string;
  readonly conflict: Conflict;
};

/** Two resolutions with the same key are the same. */
export const keyOf = ({ tip, onto, at, commit }: Resolution): string => [tip, onto, at, commit].join(' ');

/** `after`: the key of the resolution from which it was gone on. */
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

/** What lies in the workspace, or was about to when a crash came. */
export async function layOutAgain(
  place: ConflictWorkspace,
  progress: Exclude<ResolutionProgress, Finishing>,
): Promise<Resolution> {
  if (progress.kind === 'laid-out') return progress.resolution;
  return layOutDraft(place, progress.draft, readMark(place.gitDir)?.after ?? '');
}

/** What stands behind the markers for whoever solves it. */
export const labelsOf = ({ ontoName, conflict }: ResolutionDraft): MarkerLabels => ({
  ours: plain(ontoName),
  theirs: `${conflict.commit.slice(0, 10)} (${plain(conflict.subject)})`,
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
const plain = (text: string): string => text.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ');

/**
 * What was last begun in a workspace where conflicts are solved, written before it is done. A call that is repeated after
 * a crash finds what the first one did, instead of taking the next conflict for the solution of the last.
 */
export interface ProgressMark<T> {
  /** The resolution from which it was gone on; `begin` if there was none. */
  readonly after: string;
  readonly value: T;
}

const fileOf = (gitDir: string): string => join(gitDir, 'reprise-resolution.json');

/** `T` is what this program wrote; anything else is no mark. */
export function readMark<T>(gitDir: string): ProgressMark<T> | undefined {
  const { after, value } = parseRecord(readIfThere(fileOf(gitDir))) ?? {};
  return typeof after === 'string' && value !== undefined ? { after, value: value as T } : undefined;
}

export const writeMark = <T>(gitDir: string, mark: ProgressMark<T>): void =>
  replaceFile(fileOf(gitDir), `${JSON.stringify(mark)}\n`);

export const removeMark = (gitDir: string): void => removeIfThere(fileOf(gitDir));
