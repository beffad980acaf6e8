import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { temporaryFolder } from '../../process/index.ts';
import { readIfThere } from '../files.ts';
import type { Git } from '../git.ts';
import type { Repository } from '../repository.ts';
import { objectEnvironment } from './shadow.ts';
import { newStashes, type WorktreeState } from './state.ts';

interface PackDeltaRequest {
  readonly repository: Repository;
  /** Folder with the objects of the states that the repository does not have. */
  readonly objectsDir: string;
  /** Commit that is known wherever the delta is applied: the base of the case, not of the session. */
  readonly base: string;
  readonly before: WorktreeState;
  readonly after: WorktreeState;
}

/** Makes the bytes of a pack independent of the storage of objects, the number of cores and settings. */
const packArguments = [
  ...['pack-objects', '--quiet', '--revs', '--delta-base-offset', '--no-reuse-delta', '--no-reuse-object'],
  ...['--no-use-bitmap-index', '--threads=1', '--window=10', '--depth=50', '--compression=6'],
];

/**
 * Packs all objects of the two states that the base does not have. The result is a thin pack, whose deltas refer to objects
 * of the base. The same states give the same bytes.
 */
export async function packDelta(request: PackDeltaRequest): Promise<Uint8Array> {
  const { repository, objectsDir, base, before, after } = request;
  const stashed = newStashes(before, after).map(({ commit }) => commit);
  const wanted = [...new Set([...namesOf(before), ...namesOf(after), ...stashed])];
  const input = [...wanted, `^${base}`, `^${base}^{tree}`, ''].join('\n');
  const env = objectEnvironment(join(repository.commonDir, 'objects'), objectsDir);
  // With `--shallow`, git searches delta bases in the base even if the session made no commit.
  const args = [...packArguments, '--stdout', '--thin', '--shallow'];
  const pack = await repository.git.with({ env }).ok(args, { input, encoding: 'bytes' });
  return Buffer.from(pack, 'latin1');
}

const namesOf = ({ head, tree, index, refs }: WorktreeState): readonly string[] =>
  [head.commit, tree, index.tree, ...Object.values(refs)].filter(name => name !== null);

/** Commit with all its files, and with as much history as sessions refer to. */
export interface BasePack {
  readonly pack: Uint8Array;
  /** Commits whose parents are not in the pack. */
  readonly shallow: readonly string[];
}

interface PackBaseRequest {
  readonly repository: Repository;
  readonly commit: string;
  /** Commits that sessions ended with. The history that they share with `commit` is kept. */
  readonly tips: readonly string[];
  readonly maxBytes?: number | undefined;
}

const defaultMaxBytes = 50_000_000;

/**
 * Packs a commit with a shallow history, which is cut off below the newest common ancestor of the commit and all tips. Ids
 * stay the same, because no commit is rewritten. The same request gives the same bytes. Throws CAPTURE_REFUSED if the pack
 * exceeds the limit.
 */
export async function packBase(request: PackBaseRequest): Promise<BasePack> {
  const { repository, commit, tips, maxBytes = defaultMaxBytes } = request;
  const git = repository.git.with({ env: { GIT_NO_REPLACE_OBJECTS: '1' } });
  const shallow = await whereToCut(git, { repository, commit, tips });
  const folder = temporaryFolder('base');
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
    `the pack of commit ${commit.slice(0, 12)} is ${megabytes(size)} MB, more than the limit of ${megabytes(maxBytes)} MB`,
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
  // Git cuts off either all parents of a commit or none. If only some are below the floor, all of history stays.
  const isClean = cut.every(([, ...parents]) => !parents.some(parent => ids.has(parent)));
  const all = isClean ? ids : new Set((await history([])).map(([id]) => id));
  const below = isClean ? cut.flatMap(([id]) => id ?? []) : [];
  return [...new Set([...below, ...cutAlready.filter(id => all.has(id))])].sort();
}

/** Returns the newest common ancestor of `commit` and of every commit that the tips are based on. */
async function floorOf(git: Git, commit: string, tips: readonly string[]): Promise<string | undefined> {
  if (tips.length === 0) return commit;
  const listed = (await git.ok(['rev-list', '--boundary', ...tips, `^${commit}`])).split('\n');
  const fresh = new Set(listed);
  const bases = [
    ...listed.filter(line => line.startsWith('-')).map(line => line.slice(1)),
    // Tips in the history of `commit`, which a session checked out.
    ...tips.filter(tip => !fresh.has(tip)),
  ];
  const { code, stdout } = await git.run(['merge-base', '--octopus', commit, ...bases]);
  return code === 0 ? stdout.split('\n')[0] : undefined;
}

interface RestoreBaseRequest extends BasePack {
  /** Git whose environment is used, but not its folder. */
  readonly git: Git;
  /** Folder for the repository. Created if missing, and must be empty. */
  readonly folder: string;
  readonly branch: string;
  readonly commit: string;
}

/** Settings of the machine must not affect checkouts and commits in a replay. */
const noMachineSettings = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' } as const;

/** Creates a repository that has the commit, with its original id, checked out on a branch. */
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
