import { RepriseError } from '../../core/errors.ts';
import { lastLines } from '../git.ts';
import { branchPrefix, safeSegment } from '../names.ts';
import { type Repository, resolveCommit } from '../repository.ts';

export interface KeepRequest {
  readonly repository: Repository;
  readonly commit: string;
  /** Of the task; any text. */
  readonly name: string;
}

/** For work that could not be landed: `reprise/parked/<name>`. */
export const parkOnBranch = (request: KeepRequest): Promise<string> => keepOnBranch(request, 'parked');

/** For work that is to be left on a branch: `reprise/task/<name>`. */
export const deliverOnBranch = (request: KeepRequest): Promise<string> => keepOnBranch(request, 'task');

/**
 * Makes a branch for a commit and gives its name, with `-2`, `-3` and so on if others with other commits are there: none
 * is ever moved. Asked again for the same commit, it finds the branch that it made. Clean-up does not know these
 * branches, so they stay until a person deletes them. Throws GIT_FAILED.
 */
async function keepOnBranch(
  { repository: { git }, commit, name }: KeepRequest,
  folder: 'parked' | 'task',
): Promise<string> {
  const plain = `${branchPrefix}${folder}/${safeSegment(name)}`;
  for (let number = 1; ; number++) {
    const branch = number === 1 ? plain : `${plain}-${number}`;
    const ref = `refs/heads/${branch}`;
    // Git itself refuses if the branch is there by now.
    const { code, stderr } = await git.run(['update-ref', '-m', 'reprise: keep', ref, commit, ''], {
      hooks: 'skip',
    });
    if (code === 0) return branch;
    const tip = await resolveCommit(git, ref);
    if (tip === undefined) {
      throw new RepriseError('GIT_FAILED', `cannot make the branch ${branch}: ${lastLines(stderr)}`);
    }
    if (tip === commit) return branch;
  }
}

/** Work that could not be landed, where somebody finds it again. */
export interface ParkedWork {
  readonly branch: string;
  readonly commit: string;
  /** Of its last commit. */
  readonly at: string;
  readonly subject: string;
}

const parkedFields = ['refname:lstrip=2', 'objectname', 'committerdate:iso-strict', 'contents:subject'];

/** By name. One process. */
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
