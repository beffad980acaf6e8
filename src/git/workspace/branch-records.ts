import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { makeRefDurable, namesIn, parseRecord, readIfThere, recordFile, removeIfThere } from '../files.ts';
import { type Git, lastLines } from '../git.ts';
import { branchPrefix, safeSegment } from '../names.ts';
import { resolveCommit } from '../refs.ts';
import type { Repository } from '../repository.ts';

/** Record of a branch that Reprise made. A branch without a record is never changed. */
export interface BranchRecord {
  readonly branch: string;
  /** Commit that it started from. */
  readonly base: string;
  readonly run?: string | undefined;
  readonly landed?: LandedNote | undefined;
}

/** How the work of a branch got onto its target. */
export interface LandedNote {
  /** Tip of the branch when it landed. */
  readonly tip: string;
  /** Commit that it became. */
  readonly commit: string;
  /** Target and its commit before a landing moved it; absent if the target had all of the work. */
  readonly moved?: { readonly onto: string; readonly from: string } | undefined;
}

export const readBranchRecord = (repository: Repository, branch: string): BranchRecord | undefined =>
  toRecord(readIfThere(fileOf(repository, branch)));

export const writeBranchRecord = (repository: Repository, record: BranchRecord): void =>
  recordFile(fileOf(repository, record.branch), `${JSON.stringify(record)}\n`);

export const forgetBranch = (repository: Repository, branch: string): void =>
  removeIfThere(fileOf(repository, branch));

/** Lists all records, sorted by branch. */
export const branchRecords = (repository: Repository): readonly BranchRecord[] =>
  namesIn(folderOf(repository))
    .flatMap(name => toRecord(readIfThere(join(folderOf(repository), name))) ?? [])
    .sort((a, b) => (a.branch < b.branch ? -1 : 1));

/** Records that the work of a branch has landed, if Reprise made the branch. */
export function noteLanded(
  repository: Repository,
  { branch, ...landed }: LandedNote & { readonly branch: string },
): void {
  const record = readBranchRecord(repository, branch);
  if (record) writeBranchRecord(repository, { ...record, landed });
}

const folderOf = ({ commonDir }: Repository): string => join(commonDir, 'reprise', 'branches');

/** The file name is a digest, because names of branches contain slashes and may be too long. */
const fileOf = (repository: Repository, branch: string): string =>
  join(folderOf(repository), `${createHash('sha256').update(branch).digest('hex').slice(0, 32)}.json`);

function toRecord(text: string | undefined): BranchRecord | undefined {
  const { branch, base, run, landed } = parseRecord(text) ?? {};
  if (typeof branch !== 'string' || typeof base !== 'string') return undefined;
  const { tip, commit, moved } = parseRecord(JSON.stringify(landed)) ?? {};
  const { onto, from } = parseRecord(JSON.stringify(moved)) ?? {};
  const isMove = typeof onto === 'string' && typeof from === 'string';
  return {
    branch,
    base,
    ...(typeof run === 'string' ? { run } : {}),
    ...(typeof tip === 'string' && typeof commit === 'string'
      ? { landed: { tip, commit, ...(isMove ? { moved: { onto, from } } : {}) } }
      : {}),
  };
}

/** Ref that keeps commits that exist nowhere else. */
export interface ParkedRef {
  readonly ref: string;
  readonly commit: string;
  readonly commits: number;
}

/** Name of a branch for commits that a person may want to continue. */
export const parkedBranch = (name: string, commit: string): string =>
  `${branchPrefix}parked/${parkedName(name, commit)}`;

/** Ref outside the list of branches, for the work of an abandoned attempt. */
export const parkedRef = (name: string, commit: string): string =>
  `refs/reprise/parked/${parkedName(name, commit)}`;

const parkedName = (name: string, commit: string): string =>
  `${safeSegment(name.replace(branchPrefix, '').replaceAll('/', '-'))}-${commit.slice(0, 12)}`;

/** Creates the ref unless it exists. */
export async function park(git: Git, ref: string, commit: string): Promise<void> {
  if ((await resolveCommit(git, ref)) === commit) return;
  await git.ok(['update-ref', '-m', 'reprise: park', ref, commit, ''], { hooks: 'skip' });
}

interface KeepRequest {
  readonly repository: Repository;
  readonly commit: string;
  /** Name of the task; any text. */
  readonly name: string;
}

/** Keeps work that could not land on the branch `reprise/parked/<name>`. */
export const parkOnBranch = (request: KeepRequest): Promise<string> => keepOnBranch(request, 'parked');

/** Delivers work on the branch `reprise/task/<name>`. */
export const deliverOnBranch = (request: KeepRequest): Promise<string> => keepOnBranch(request, 'task');

/**
 * Creates a branch for a commit and returns its name, with `-2`, `-3` and so on if branches with other commits exist: no
 * branch is ever moved. Idempotent for the same commit. Cleanup does not know these branches, so they stay until a person
 * deletes them. Throws GIT_FAILED.
 */
async function keepOnBranch(
  { repository, commit, name }: KeepRequest,
  folder: 'parked' | 'task',
): Promise<string> {
  const { git } = repository;
  const plain = `${branchPrefix}${folder}/${safeSegment(name)}`;
  for (let number = 1; ; number++) {
    const branch = number === 1 ? plain : `${plain}-${number}`;
    const ref = `refs/heads/${branch}`;
    // Git refuses if the branch exists.
    const { code, stderr } = await git.run(['update-ref', '-m', 'reprise: keep', ref, commit, ''], {
      hooks: 'skip',
    });
    if (code === 0) await makeRefDurable(repository, ref);
    if (code === 0) return branch;
    const tip = await resolveCommit(git, ref);
    if (tip === undefined) {
      throw new RepriseError('GIT_FAILED', `cannot make the branch ${branch}: ${lastLines(stderr)}`);
    }
    if (tip === commit) return branch;
  }
}

/** Work that could not land, on a branch of its own. */
export interface ParkedWork {
  readonly branch: string;
  readonly commit: string;
  /** Time of its last commit. */
  readonly at: string;
  readonly subject: string;
}

const parkedFields = ['refname:lstrip=2', 'objectname', 'committerdate:iso-strict', 'contents:subject'];

/** Lists parked work by branch, with a single process. */
export async function parkedWork({ git }: Pick<Repository, 'git'>): Promise<readonly ParkedWork[]> {
  const format = parkedFields.map(field => `%(${field})`).join('%00');
  const lines = await git.ok(['for-each-ref', `--format=${format}`, `refs/heads/${branchPrefix}parked/`]);
  return lines
    .split('\n')
    .filter(line => line !== '')
    .map(line => {
      const [branch = '', commit = '', at = '', subject = ''] = line.split('\0');
      return { branch, commit, at, subject };
    });
}
