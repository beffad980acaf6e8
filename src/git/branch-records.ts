import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { namesIn, parseRecord, readIfThere, replaceFile } from './files.ts';
import { removeIfThere } from './lock-file.ts';
import type { Repository } from './repository.ts';

/** What Reprise knows of a branch that it made. A branch without a record is never touched. */
export interface BranchRecord {
  readonly branch: string;
  /** Where it began. */
  readonly base: string;
  readonly run?: string | undefined;
  /** The tip of the branch that was landed, and the commit that it became. */
  readonly landed?: { readonly tip: string; readonly commit: string } | undefined;
}

export const readBranchRecord = (repository: Repository, branch: string): BranchRecord | undefined =>
  toRecord(readIfThere(fileOf(repository, branch)));

export const writeBranchRecord = (repository: Repository, record: BranchRecord): void =>
  replaceFile(fileOf(repository, record.branch), `${JSON.stringify(record)}\n`);

export const forgetBranch = (repository: Repository, branch: string): void =>
  removeIfThere(fileOf(repository, branch));

/** By name. */
export const branchRecords = (repository: Repository): readonly BranchRecord[] =>
  namesIn(folderOf(repository))
    .flatMap(name => toRecord(readIfThere(join(folderOf(repository), name))) ?? [])
    .sort((a, b) => (a.branch < b.branch ? -1 : 1));

/** Remembers that the work is on another branch now, if the branch is one of Reprise's. */
export function noteLanded(
  repository: Repository,
  { branch, tip, commit }: { readonly branch: string; readonly tip: string; readonly commit: string },
): void {
  const record = readBranchRecord(repository, branch);
  if (record) writeBranchRecord(repository, { ...record, landed: { tip, commit } });
}

const folderOf = ({ commonDir }: Repository): string => join(commonDir, 'reprise', 'branches');

/** Branch names hold slashes, and may be longer than a file name. */
const fileOf = (repository: Repository, branch: string): string =>
  join(folderOf(repository), `${createHash('sha256').update(branch).digest('hex').slice(0, 32)}.json`);

function toRecord(text: string | undefined): BranchRecord | undefined {
  const { branch, base, run, landed } = parseRecord(text) ?? {};
  if (typeof branch !== 'string' || typeof base !== 'string') return undefined;
  const { tip, commit } = parseRecord(JSON.stringify(landed)) ?? {};
  return {
    branch,
    base,
    ...(typeof run === 'string' ? { run } : {}),
    ...(typeof tip === 'string' && typeof commit === 'string' ? { landed: { tip, commit } } : {}),
  };
}
