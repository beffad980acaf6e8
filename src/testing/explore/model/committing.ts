import { RepriseError } from '../../../core/errors.ts';
import type { EventOf } from '../../../core/events.ts';
import { toEpochMs } from '../../../core/time.ts';
import { committer } from '../../../engine/work/committer.ts';
import { branchRef, type Model, type Worktree } from '../../../git/model/repository.ts';
import { shellWord } from '../../../git/words.ts';
import type { SaveRequest, WorkFolder } from '../../../git/workspace/save.ts';

/** Like `saveWork`. */
export function saveWork(model: Model, request: SaveRequest): EventOf<'workspace.saved'>['data'] {
  const { path, branch, base } = request;
  const worktree = thereAt(model, path);
  const commit = commitAll(model, worktree, request);
  const { head } = worktree;
  if (head.kind === 'commit' || head.branch !== branch) bringBranchAlong(model, { path, branch, commit });
  if (commit === base) return { commit, commits: 0, files: 0, insertions: 0, deletions: 0 };
  const [parent, ...others] = model.objects.commit(commit).parents;
  const isOne = parent === base && others.length === 0;
  return {
    commit,
    commits: isOne ? 1 : model.history.commitsOf([commit], [base]).length,
    ...model.trees.counts(model.treeOf(base), model.treeOf(commit)),
  };
}

/** Throws WORKSPACE_FAILED if the folder is gone. */
export function thereAt(model: Model, path: string): Worktree {
  const worktree = model.worktrees.get(path);
  if (worktree) return worktree;
  throw new RepriseError('WORKSPACE_FAILED', `the workspace ${path} was removed while the step was at work`, {
    hint: 'what was committed in it is on its branch; find out what removed the folder, then resume the run',
  });
}

function commitAll(
  model: Model,
  worktree: Worktree,
  { message, at }: Pick<SaveRequest, 'message' | 'at'>,
): string {
  const head = model.headOf(worktree);
  if (head !== undefined && model.treeOf(head) === worktree.files) return head;
  const who = `${committer.name} <${committer.email}> ${Math.floor(toEpochMs(at) / 1000)} +0000`;
  const commit = model.objects.addCommit({
    tree: worktree.files,
    parents: head === undefined ? [] : [head],
    lines: [`author ${who}`, `committer ${who}`],
    message: Buffer.from(cleanedUp(message)).toString('latin1'),
  });
  moveHead(model, worktree, commit);
  return commit;
}

/** All that is in the worktree is staged then. */
function moveHead(model: Model, worktree: Worktree, commit: string): void {
  const { head, files } = worktree;
  if (head.kind === 'branch') model.refs.set(branchRef(head.branch), commit);
  model.change(worktree, { staged: files, ...(head.kind === 'commit' ? { head: { ...head, commit } } : {}) });
}

/** As `git commit --cleanup=whitespace` does. */
function cleanedUp(message: string): string {
  const lines = message
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+|\n+$/g, '');
  return lines === '' ? '' : `${lines}\n`;
}

/** An agent may have gone to another branch, or to none: the branch of the workspace follows if it loses nothing by it. */
function bringBranchAlong(
  model: Model,
  { path, branch, commit }: { readonly path: string; readonly branch: string; readonly commit: string },
): void {
  const tip = model.tip(branch);
  if (tip !== undefined && !model.history.isAncestor(tip, commit)) {
    throw new RepriseError(
      'WORKSPACE_FAILED',
      `the work in ${path} is not on ${branch}, which has other commits`,
      {
        hint: `bring both together: cd ${JSON.stringify(path)} && git switch ${branch}, and merge what is missing`,
      },
    );
  }
  model.refs.set(branchRef(branch), commit);
  model.change(thereAt(model, path), { head: { kind: 'branch', branch } });
}

/** Like `changesIn`. */
export function changesIn(
  model: Model,
  { path, base, ignoring }: WorkFolder & { readonly ignoring: readonly string[] },
): readonly string[] {
  const worktree = thereAt(model, path);
  const head = model.headOf(worktree);
  const committed =
    head === undefined || head === base
      ? []
      : model.trees.changedPaths(model.treeOf(base), model.treeOf(head));
  const named = head !== base && committed.length === 0 ? ['a commit without changes'] : committed;
  const ignored = new Set(ignoring);
  return [...new Set([...named, ...model.uncommitted(worktree)])].filter(file => !ignored.has(file));
}

/** For people and judges to read: whole files, as they were and as they are. */
export function patchOf(
  model: Model,
  { path, base, limit }: { readonly path: string; readonly base: string; readonly limit: number },
): string {
  const head = model.headOf(thereAt(model, path)) ?? base;
  const text = model.trees
    .differences(model.treeOf(base), model.treeOf(head))
    .map(({ path: file, before, after }) => {
      const side = (sign: string, id: string | undefined) =>
        id === undefined ? '' : model.objects.text(id).replace(/^/gm, sign);
      return `diff --git ${shellWord(`a/${file}`)} ${shellWord(`b/${file}`)}\n${side('-', before?.id)}\n${side('+', after?.id)}\n`;
    })
    .join('');
  return text.length > limit ? `${text.slice(0, limit)}\n… (cut off here)` : text;
}
