import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { join } from 'node:path';

/** Returns a barrier that resolves for all callers once `size` different names have called it. */
export function meetingOf(size: number): (name: string) => Promise<void> {
  const here = new Set<string>();
  let begin = () => {};
  const begun = new Promise<void>(resolve => {
    begin = resolve;
  });
  return name => {
    here.add(name);
    if (here.size === size) begin();
    return begun;
  };
}

/** Resolves when main has at least `count` commits in the repository of a folder. */
export async function commitsOnMain(folder: string, count: number): Promise<void> {
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  const gitFolder = git('rev-parse', '--path-format=absolute', '--git-common-dir');
  const changes = watch(join(gitFolder, 'refs', 'heads'));
  try {
    while (Number(git('rev-list', '--count', 'main')) < count) await once(changes, 'change');
  } finally {
    changes.close();
  }
}
