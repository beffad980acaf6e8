import { branchRef, type Model, type Worktree } from '../../../git/model/repository.ts';
import { branchPrefix, safeSegment } from '../../../git/names.ts';
import { type Parked, parkedBranch, parkedRef } from '../../../git/parking.ts';
import type { ParkedCommits } from '../../../git/workspace/remove.ts';

/** Like `parkAll`: what would be lost if the workspace were at the target. */
export function parkAll(
  model: Model,
  worktree: Worktree,
  { branch, target }: { readonly branch: string; readonly target: string },
): readonly Parked[] {
  const head = model.headOf(worktree);
  const tip = model.tip(branch);
  const isChanged = head !== undefined && model.uncommitted(worktree).length > 0;
  const leftOver = isChanged ? snapshot(model, worktree, head) : undefined;
  const parked: Parked[] = [];
  for (const commit of [leftOver ?? head, tip === head ? undefined : tip]) {
    if (commit === undefined || model.history.isAncestor(commit, target)) continue;
    const commits = model.commitsNowhereElse(commit, branch);
    if (commits === 0) continue;
    const ref = parkedRef(branch, commit);
    model.refs.set(ref, commit);
    parked.push({ ref, commit, commits });
  }
  return parked;
}

/** With the date of HEAD, so that the same work always gives the same commit. */
function snapshot(model: Model, { files }: Worktree, head: string): string {
  const seconds = / (\d+) [+-]\d{4}$/.exec(
    model.objects.commit(head).lines.find(line => line.startsWith('committer ')) ?? '',
  )?.[1];
  const who = `reprise <reprise@localhost> ${seconds ?? 0} +0000`;
  return model.objects.addCommit({
    tree: files,
    parents: [head],
    lines: [`author ${who}`, `committer ${who}`],
    message: 'Uncommitted work of an attempt that was given up\n',
  });
}

/** Commits on a HEAD that nothing else points to. */
export function parkHead(model: Model, name: string, commit: string): ParkedCommits | undefined {
  const commits = model.commitsNowhereElse(commit);
  if (commits === 0) return undefined;
  const branch = parkedBranch(name, commit);
  model.refs.set(branchRef(branch), commit);
  return { branch, commit, commits };
}

/** Like `parkOnBranch` and `deliverOnBranch`. */
export function keepOnBranch(
  model: Model,
  folder: 'parked' | 'task',
  { task, commit }: { readonly task: string; readonly commit: string },
): string {
  const plain = `${branchPrefix}${folder}/${safeSegment(task)}`;
  for (let number = 1; ; number++) {
    const branch = number === 1 ? plain : `${plain}-${number}`;
    const tip = model.tip(branch);
    if (tip === undefined) model.refs.set(branchRef(branch), model.objects.commit(commit).id);
    if (tip === undefined || tip === commit) return branch;
  }
}
