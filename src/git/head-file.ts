import { join } from 'node:path';
import type { Git } from './git.ts';
import { readIfThere } from './small-files.ts';

/**
 * The commit that is checked out. Where git keeps it in files, as it does right after a commit, no process is started.
 * Throws GIT_FAILED if there is none.
 */
export async function headCommit(
  git: Git,
  folders: { readonly gitDir: string; readonly commonDir: string } | undefined,
): Promise<string> {
  return (folders && headInFiles(folders)) ?? (await git.line(['rev-parse', 'HEAD']));
}

function headInFiles({ gitDir, commonDir }: { gitDir: string; commonDir: string }): string | undefined {
  const head = readIfThere(join(gitDir, 'HEAD'))?.trimEnd() ?? '';
  if (isId(head)) return head;
  const ref = /^ref: (refs\/heads\/.+)$/.exec(head)?.[1];
  const tip = ref === undefined ? undefined : readIfThere(join(commonDir, ref))?.trimEnd();
  return tip !== undefined && isId(tip) ? tip : undefined;
}

const isId = (text: string): boolean => /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(text);
