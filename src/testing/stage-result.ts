import { join } from 'node:path';
import type { Stage } from '../cases/perform/stage.ts';
import { branchTip } from '../git/refs.ts';
import { worktreeEntries } from '../git/workspace/entries.ts';
import type { SnapshotResult } from './snapshot/compose.ts';

/** The commits of a stage, by their ids, and the branches. */
export interface StageHistory {
  readonly commits: ReadonlyMap<string, StageCommit>;
  /** With their tips. */
  readonly branches: ReadonlyMap<string, string>;
}

interface StageCommit {
  readonly parents: readonly string[];
  readonly subject: string;
}

/** Everything that refs lead to, with one process. */
export async function stageHistory({ git }: Stage): Promise<StageHistory> {
  const args = ['log', '--all', '--decorate=full', '--decorate-refs=refs/heads', '--format=%H %P%n%D%n%s'];
  const lines = (await git.ok(args)).split('\n');
  const commits = new Map<string, StageCommit>();
  const branches = new Map<string, string>();
  for (let at = 0; at + 2 < lines.length; at += 3) {
    const [ids = '', refs = '', subject = ''] = lines.slice(at, at + 3);
    const [id = '', ...parents] = ids.trimEnd().split(' ');
    commits.set(id, { parents, subject });
    const names = refs === '' ? [] : refs.split(', ');
    for (const name of names) branches.set(name.replace(/^refs\/heads\//, ''), id);
  }
  return { commits, branches };
}

/** What is there after the last step. */
export async function stageResult(
  stage: Stage,
  { main, history }: { readonly main: string; readonly history: StageHistory },
): Promise<SnapshotResult> {
  return {
    main: (lineOf(history, main) ?? (await askForLine(stage, main))).filter(subject => subject !== ''),
    worktrees: worktreeEntries(repositoryOf(stage)).map(({ path }) => path),
    branches: [...history.branches.keys()].filter(branch => branch !== main),
  };
}

/** Subjects from the first commit of a branch to its tip; `undefined` if there is a merge among them. */
function lineOf({ commits, branches }: StageHistory, branch: string): readonly string[] | undefined {
  const subjects: string[] = [];
  for (let id = branches.get(branch); id !== undefined; ) {
    const commit = commits.get(id);
    if (commit === undefined || commit.parents.length > 1) return undefined;
    subjects.unshift(commit.subject);
    id = commit.parents[0];
  }
  return subjects;
}

async function askForLine({ git }: Stage, branch: string): Promise<readonly string[]> {
  const log = await git.ok(['log', '--reverse', '--format=%s', `refs/heads/${branch}`, '--']);
  return log.split('\n');
}

const repositoryOf = ({ git, repo }: Stage) => ({ git, root: repo, commonDir: join(repo, '.git') });

/** Where the main branch is. */
export async function mainOf(stage: Stage, main: string): Promise<{ ref: string; commit: string } | null> {
  const commit = await branchTip(repositoryOf(stage), main);
  return commit === undefined ? null : { ref: `refs/heads/${main}`, commit };
}
