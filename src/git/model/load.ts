import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { temporaryFolder } from '../../process/index.ts';
import { type CommitText, parseCommit } from '../commits.ts';
import { type ResolutionProgress, readMark } from '../conflict/progress.ts';
import type { Git } from '../git.ts';
import { lockFolder, readLock } from '../lock.ts';
import type { Repository } from '../repository.ts';
import { withScratchIndex } from '../scratch-index.ts';
import { branchRecords } from '../workspace/branch-records.ts';
import { gitInside, worktreeConditionAt, worktreeEntries } from '../workspace/entries.ts';
import { isSetUp } from '../workspace/save.ts';
import type { Objects, TreeEntry } from './objects.ts';
import { Model, type ModelHead, type ModelWorktree } from './repository.ts';

/**
 * Loads the current state of a repository: its refs with their history, the files of their tips, and its worktrees with
 * their uncommitted changes. Objects that no ref or worktree reaches are left out.
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

async function worktreesOf(repository: Repository): Promise<readonly ModelWorktree[]> {
  const { root } = repository;
  const entries = await worktreeEntries(repository);
  const worktrees = await Promise.all([
    root === undefined ? undefined : worktreeAt(repository.git.with({ cwd: root }), root),
    ...entries.map(async ({ path }): Promise<ModelWorktree | undefined> => {
      const state = await worktreeConditionAt(repository, path);
      if (state.kind !== 'finished') return undefined;
      const { gitDir, label } = state;
      const worktree = await worktreeAt(gitInside(repository, path), path);
      const mark = readMark<ResolutionProgress>(gitDir);
      return {
        ...worktree,
        isSetUp: isSetUp(gitDir),
        ...(mark ? { mark } : {}),
        ...(label.branch === undefined ? {} : { label: { branch: label.branch, base: label.base } }),
      };
    }),
  ]);
  return worktrees.filter(worktree => worktree !== undefined);
}

async function worktreeAt(git: Git, path: string): Promise<ModelWorktree> {
  const [head, staged] = await Promise.all([headOf(git), git.line(['write-tree'])]);
  const files = await withScratchIndex(git, async side => {
    await side.ok(['add', '--all']);
    return side.line(['write-tree']);
  });
  return { path, head, files, staged, isSetUp: false };
}

async function headOf(git: Git): Promise<ModelHead> {
  const { code, stdout } = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  if (code === 0) return { kind: 'branch', branch: stdout.trim() };
  return { kind: 'commit', commit: await git.line(['rev-parse', 'HEAD']) };
}

/** Returns the ids of all commits, and of the trees and files that a tip or a worktree has. */
async function idsOf(git: Git, model: Model): Promise<readonly string[]> {
  const worktrees = [...model.worktrees.values()];
  const detached = worktrees.flatMap(({ head }) => (head.kind === 'commit' ? head.commit : []));
  const tips = [...new Set([...model.refs.values(), ...detached])];
  const trees = [...new Set(worktrees.flatMap(({ files, staged }) => [files, staged]))];
  if ([...tips, ...trees].some(id => id.length !== 40))
    throw new RepriseError('USAGE', 'a repository with SHA-256 object ids cannot be explored in memory', {
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

/** Reads objects by their ids, with one git process. */
async function loadObjects(git: Git, ids: readonly string[], objects: Objects): Promise<void> {
  const wanted = [...new Set(ids)].filter(id => !objects.has(id));
  if (wanted.length === 0) return;
  const input = wanted.map(id => `${id}\n`).join('');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  const commits = new Map<string, CommitText>();
  for (let at = 0; at < output.length; ) {
    const lineEnd = output.indexOf('\n', at);
    const [id = '', type, size] = output.slice(at, lineEnd).split(' ');
    const end = lineEnd + 1 + Number(type === 'missing' ? -1 : size);
    const text = output.slice(lineEnd + 1, Math.max(end, lineEnd + 1));
    if (type === 'commit') commits.set(id, parseCommit(text));
    else if (type === 'tree') objects.addTree(new Map(entriesOf(text)));
    else if (type === 'blob') objects.addBlob(Buffer.from(text, 'latin1'));
    at = end + 1;
  }
  addParentsFirst(commits, objects);
}

/** Parses the entries of a tree: `<mode> <name>`, a zero byte, and the bytes of the id. */
function* entriesOf(text: string): Iterable<readonly [string, TreeEntry]> {
  for (let at = 0; at < text.length; ) {
    const space = text.indexOf(' ', at);
    const zero = text.indexOf('\0', space);
    const name = Buffer.from(text.slice(space + 1, zero), 'latin1').toString();
    const id = Buffer.from(text.slice(zero + 1, zero + 21), 'latin1').toString('hex');
    yield [name, { mode: text.slice(at, space), id }];
    at = zero + 21;
  }
}

function addParentsFirst(commits: ReadonlyMap<string, CommitText>, objects: Objects): void {
  const waiting = [...commits.keys()];
  for (let id = waiting.at(-1); id !== undefined; id = waiting.at(-1)) {
    const commit = commits.get(id);
    const parents = (commit?.parents ?? []).filter(parent => commits.has(parent) && !objects.has(parent));
    if (commit && parents.length > 0 && !objects.has(id)) {
      waiting.push(...parents);
      continue;
    }
    waiting.pop();
    if (commit) objects.addCommit(commit);
  }
}

/** Reads the objects of thin packs that are based on the repository. Writes nothing to the repository. */
export async function loadPacks(
  repository: Repository,
  packs: readonly Uint8Array[],
  objects: Objects,
): Promise<void> {
  const folder = temporaryFolder('model');
  try {
    const own = join(folder, 'objects');
    mkdirSync(own);
    const git = repository.git.with({
      env: {
        GIT_OBJECT_DIRECTORY: own,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: join(repository.commonDir, 'objects'),
      },
    });
    for (const pack of packs.filter(hasObjects)) {
      const input = Buffer.from(pack).toString('latin1');
      // `unpack-objects` would skip objects that the repository has, but the model holds only the files of the tips.
      const indexing = ['-c', 'core.fsync=none', 'index-pack', '--stdin', '--fix-thin'];
      const printed = await git.line(indexing, { input, encoding: 'bytes' });
      const index = join(own, 'pack', `pack-${printed.slice(printed.indexOf('\t') + 1)}.idx`);
      await loadObjects(git, await idsIn(git, index), objects);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The third field of the header, after signature and version, is the number of objects. */
const hasObjects = (pack: Uint8Array): boolean => Buffer.from(pack).readUInt32BE(8) > 0;

async function idsIn(git: Git, index: string): Promise<readonly string[]> {
  const listed = await git.ok(['show-index'], {
    input: readFileSync(index, 'latin1'),
    encoding: 'bytes',
  });
  return listed.split('\n').flatMap(line => line.split(' ')[1] ?? []);
}
