import { RepriseError } from '../../core/errors.ts';
import { loadObjects } from '../../testing/explore/model/load-objects.ts';
import { branchRecords } from '../branch-records.ts';
import type { Progress } from '../conflict/progress.ts';
import type { Git } from '../git.ts';
import { gitInside } from '../git-inside.ts';
import { lockFolder } from '../lock.ts';
import { readLock } from '../lock-file.ts';
import type { HeadFile } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { readMark } from '../resolution-mark.ts';
import { withSideIndex } from '../side-index.ts';
import { worktreeEntries } from '../workspace/entries.ts';
import { isSetUp } from '../workspace/save.ts';
import { Model, type Worktree } from './repository.ts';

/**
 * The model of a repository as it is now: its refs and their history, the files of their tips, and its worktrees with what
 * is not committed in them. What nobody has a ref for is not in it.
 */
export async function modelOf(repository: Repository): Promise<Model> {
  const model = new Model();
  const { git } = repository;
  for (const [ref, commit] of await refsOf(git)) model.refs.set(ref, commit);
  for (const worktree of await worktreesOf(repository)) model.worktrees.set(worktree.path, worktree);
  for (const record of branchRecords(repository)) model.records.set(record.branch, record);
  model.landing = { token: readLock(lockFolder(repository, 'land')).token, holder: undefined };
  await loadObjects(git, await idsOf(git, model), model.objects);
  return model;
}

async function refsOf(git: Git): Promise<readonly (readonly [string, string])[]> {
  const format = '%(refname) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)';
  const lines = (await git.ok(['for-each-ref', `--format=${format}`])).split('\n');
  return lines.filter(line => line !== '').map(line => line.split(' ') as [string, string]);
}

async function worktreesOf(repository: Repository): Promise<readonly Worktree[]> {
  const { root } = repository;
  const made = worktreeEntries(repository).filter(({ ready, missing }) => ready && !missing);
  return Promise.all([
    ...(root === undefined ? [] : [worktreeAt(repository.git.with({ cwd: root }), root)]),
    ...made.map(async ({ path, gitDir, label }): Promise<Worktree> => {
      const worktree = await worktreeAt(gitInside(repository, path), path);
      const mark = readMark<Progress>(gitDir);
      return {
        ...worktree,
        isSetUp: isSetUp(path),
        ...(mark ? { mark } : {}),
        ...(label?.branch === undefined ? {} : { label: { branch: label.branch, base: label.base } }),
      };
    }),
  ]);
}

async function worktreeAt(git: Git, path: string): Promise<Worktree> {
  const [head, staged] = await Promise.all([headOf(git), git.line(['write-tree'])]);
  const files = await withSideIndex(git, async side => {
    await side.ok(['add', '--all']);
    return side.line(['write-tree']);
  });
  return { path, head, files, staged, isSetUp: false };
}

async function headOf(git: Git): Promise<HeadFile> {
  const { code, stdout } = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  if (code === 0) return { kind: 'branch', branch: stdout.trim() };
  return { kind: 'commit', commit: await git.line(['rev-parse', 'HEAD']) };
}

/** All commits, and the trees and files of those that something points to. */
async function idsOf(git: Git, model: Model): Promise<readonly string[]> {
  const worktrees = [...model.worktrees.values()];
  const detached = worktrees.flatMap(({ head }) => (head.kind === 'commit' ? head.commit : []));
  const tips = [...new Set([...model.refs.values(), ...detached])];
  const trees = [...new Set(worktrees.flatMap(({ files, staged }) => [files, staged]))];
  if ([...tips, ...trees].some(id => id.length !== 40))
    throw new RepriseError('USAGE', 'a repository with ids of SHA-256 cannot be explored in memory', {
      hint: 'explore it on real git: --on git',
    });
  const listed = async (args: readonly string[], names: readonly string[]) =>
    (await git.ok(['rev-list', ...args, '--stdin'], { input: names.map(name => `${name}\n`).join('') }))
      .split('\n')
      .filter(line => line !== '')
      .map(line => line.split(' ')[0] ?? '');
  const [commits, objects] = await Promise.all([
    tips.length === 0 ? [] : listed([], tips),
    listed(['--objects', '--no-walk'], [...tips, ...trees]),
  ]);
  return [...commits, ...objects, ...trees];
}
