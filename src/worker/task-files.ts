import type { Branches } from '../git/refs.ts';
import type { WorkerRules } from './rules.ts';

/** Files that stand for tasks, where the branch stood when they were read. */
export interface TaskFiles {
  /** `null`: there is no such branch, or it has no commit. */
  readonly main: string | null;
  readonly files: readonly { readonly file: string; readonly version: string; readonly text: string }[];
  /** Those that were too large to be read. */
  readonly tooLarge: readonly string[];
}

/** The tasks as they are written on the branch; none if a command lists them. `last`: what was read before. */
export async function readTaskFiles(
  branches: Branches,
  { branch, tasks }: Pick<WorkerRules, 'branch' | 'tasks'>,
  last?: TaskFiles,
): Promise<TaskFiles> {
  const main = await branches.tip(branch);
  if (main === null || tasks.kind !== 'folder') return { main, files: [], tooLarge: [] };
  if (last?.main === main) return last;
  const read = await branches.filesAt({ commit: main, folder: tasks.folder });
  const markdown = read.filter(({ path }) => path.endsWith('.md'));
  return {
    main,
    files: markdown.flatMap(({ path, blob, text }) =>
      text === undefined ? [] : { file: path, version: blob, text },
    ),
    tooLarge: markdown.flatMap(({ path, text }) => (text === undefined ? path : [])),
  };
}
