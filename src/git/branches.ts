import { type FileAt, readFilesAt } from './read-files-at.ts';
import { branchTip, tipInFiles } from './refs.ts';
import type { Repository } from './repository.ts';

/** What can be read of branches without a checkout. Something else can stand in for a repository. */
export interface Branches {
  /** `null` if there is no such branch, or it has no commit. */
  tip(branch: string): Promise<string | null>;
  /** The same for whoever cannot wait; `undefined` if git would have to be asked. */
  tipNow(branch: string): string | null | undefined;
  /** The files directly in a folder, as a commit has them. */
  filesAt(place: { readonly commit: string; readonly folder: string }): Promise<readonly FileAt[]>;
}

/** A repository that is opened when it is needed; `known`: what can be told of it before. */
export interface Opening {
  (): Promise<Repository>;
  known?(): Pick<Repository, 'commonDir'> | undefined;
}

export const branchesOf = (repository: Opening): Branches => ({
  tip: async branch => (await branchTip(await repository(), branch)) ?? null,
  tipNow: branch => {
    const known = repository.known?.();
    return known && tipInFiles(known.commonDir, branch);
  },
  filesAt: async place => readFilesAt({ git: (await repository()).git, ...place }),
});
