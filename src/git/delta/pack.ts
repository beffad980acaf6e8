import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import type { Repository } from '../repository.ts';
import { objectEnvironment } from './shadow.ts';
import { newStashes, type WorktreeState } from './state.ts';

interface PackDeltaRequest {
  readonly repository: Repository;
  /** Where the objects of the states are that the repository does not have. */
  readonly objectsDir: string;
  /** The commit that whoever applies the delta has: that of the case, not that of the session. */
  readonly base: string;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
}

/** Nothing of how objects happen to be stored, of the number of cores or of settings gets into the bytes. */
const packArguments = [
  ...['pack-objects', '--quiet', '--revs', '--delta-base-offset', '--no-reuse-delta', '--no-reuse-object'],
  ...['--no-use-bitmap-index', '--threads=1', '--window=10', '--depth=50', '--compression=6'],
];

/**
 * One pack of all objects that the two states name and the base does not have. It leans on objects of the base (a thin
 * pack). The same states give the same bytes.
 */
export async function packDelta(request: PackDeltaRequest): Promise<Uint8Array> {
  const { repository, objectsDir, base, before, after } = request;
  const stashed = newStashes(before, after).map(({ commit }) => commit);
  const wanted = [...new Set([...namesOf(before), ...namesOf(after), ...stashed])];
  const input = [...wanted, `^${base}`, `^${base}^{tree}`, ''].join('\n');
  const env = objectEnvironment(join(repository.commonDir, 'objects'), objectsDir);
  // `--shallow`: git looks for bases of deltas in the base even if the session made no commit.
  const args = [...packArguments, '--stdout', '--thin', '--shallow'];
  const pack = await repository.git.with({ env }).ok(args, { input, encoding: 'bytes' });
  return Buffer.from(pack, 'latin1');
}

const namesOf = ({ head, tree, index, refs }: WorktreeState): readonly string[] =>
  [head.commit, tree, index.tree, ...Object.values(refs)].filter(name => name !== null);

/** A commit with all its files, and as much history as sessions lean on. */
export interface BasePack {
  readonly pack: Uint8Array;
  /** Commits whose parents are not in it. */
  readonly shallow: readonly string[];
}

interface PackBaseRequest {
  readonly repository: Repository;
  readonly commit: string;
  /** All commits that sessions came to. What they share with the history of `commit` is kept. */
  readonly tips: readonly string[];
  readonly maxBytes?: number | undefined;
}

const defaultMaxBytes = 50_000_000;

/**
 * Ids stay what they are, because no commit is changed: history is cut off below the newest commit that everything
 * stands on. The same request gives the same bytes. Throws CAPTURE_REFUSED above the limit.
 */
export async function packBase(request: PackBaseRequest): Promise<BasePack> {
  const { repository, commit, tips, maxBytes = defaultMaxBytes } = request;
  const git = repository.git.with({ env: { GIT_NO_REPLACE_OBJECTS: '1' } });
  const shallow = await whereToCut(git, { repository, commit, tips });
  const folder = mkdtempSync(join(tmpdir(), 'reprise-base-'));
  try {
    const input = [...shallow.map(id => `--shallow ${id}`), commit, ''].join('\n');
    const name = await git.line([...packArguments, join(folder, 'base')], { input });
    const file = join(folder, `base-${name}.pack`);
    const { size } = statSync(file);
    if (size > maxBytes) throw tooLarge({ commit, size, maxBytes });
    return { pack: readFileSync(file), shallow };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const tooLarge = ({
  commit,
  size,
  maxBytes,
}: {
  commit: string;
  size: number;
  maxBytes: number;
}): RepriseError =>
  new RepriseError(
    'CAPTURE_REFUSED',
    `commit ${commit.slice(0, 12)} with its files is ${megabytes(size)} MB packed, more than the limit of ${megabytes(maxBytes)} MB`,
    { hint: 'raise the limit, or capture the run in a smaller repository' },
  );

const megabytes = (bytes: number): string => String(Math.ceil(bytes / 1000) / 1000);

interface CutRequest extends Pick<PackBaseRequest, 'repository' | 'commit' | 'tips'> {}

async function whereToCut(git: Git, { repository, commit, tips }: CutRequest): Promise<readonly string[]> {
  const cutAlready = (readIfThere(join(repository.commonDir, 'shallow')) ?? '').split('\n');
  const floor = await floorOf(git, commit, tips);
  const history = async (limit: readonly string[]) =>
    (await git.ok(['rev-list', '--parents', commit, ...limit]))
      .split('\n')
      .filter(line => line !== '')
      .map(line => line.split(' '));
  const kept = await history(floor === undefined ? [] : ['--not', `${floor}^@`]);
  const ids = new Set(kept.map(([id]) => id));
  const cut = kept.filter(([, ...parents]) => parents.some(parent => !ids.has(parent)));
  // Git cuts off all parents of a commit or none. Where only some of them are below the floor, all of history stays.
  const isClean = cut.every(([, ...parents]) => !parents.some(parent => ids.has(parent)));
  const all = isClean ? ids : new Set((await history([])).map(([id]) => id));
  const below = isClean ? cut.flatMap(([id]) => id ?? []) : [];
  return [...new Set([...below, ...cutAlready.filter(id => all.has(id))])].sort();
}

/** The newest commit that `commit` and every commit that a tip leans on have in common. */
async function floorOf(git: Git, commit: string, tips: readonly string[]): Promise<string | undefined> {
  if (tips.length === 0) return commit;
  const listed = (await git.ok(['rev-list', '--boundary', ...tips, `^${commit}`])).split('\n');
  const fresh = new Set(listed);
  const leanedOn = [
    ...listed.filter(line => line.startsWith('-')).map(line => line.slice(1)),
    // Tips in the history of the commit, where a session went back to.
    ...tips.filter(tip => !fresh.has(tip)),
  ];
  const { code, stdout } = await git.run(['merge-base', '--octopus', commit, ...leanedOn]);
  return code === 0 ? stdout.split('\n')[0] : undefined;
}

interface RestoreBaseRequest extends BasePack {
  /** Git as it should run: only what surrounds it is used. */
  readonly git: Git;
  /** Is made, and must be empty. */
  readonly folder: string;
  readonly branch: string;
  readonly commit: string;
}

/** Settings of the machine must not change what is checked out or committed in a replay. */
const noMachineSettings = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' } as const;

/** Makes a repository with the commit checked out on a branch, with the ids that it had. */
export async function restoreBase(request: RestoreBaseRequest): Promise<void> {
  const { folder, pack, shallow, branch, commit } = request;
  mkdirSync(folder, { recursive: true });
  const git = request.git.with({
    cwd: folder,
    env: { ...noMachineSettings, GIT_DIR: undefined, GIT_WORK_TREE: undefined },
  });
  const format = commit.length === 64 ? ['--object-format=sha256'] : [];
  await git.ok(['init', '--quiet', '--template=', `--initial-branch=${branch}`, ...format]);
  const input = Buffer.from(pack).toString('latin1');
  await git.ok(['-c', 'core.fsync=none', 'index-pack', '--stdin'], { input, encoding: 'bytes' });
  if (shallow.length > 0)
    writeFileSync(join(folder, '.git', 'shallow'), shallow.map(id => `${id}\n`).join(''));
  await git.ok(['reset', '--hard', '--quiet', commit]);
}
