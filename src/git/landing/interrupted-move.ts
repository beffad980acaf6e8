import { createHash } from 'node:crypto';
import { lstatSync, readFileSync, readlinkSync, rmdirSync, statSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode, namesIn, parseRecord, readIfThere, recordFile, removeIfThere } from '../files.ts';
import { describeLock, type Git, removeStaleLock } from '../git.ts';
import { quotedPath } from '../names.ts';
import { readHead, resolveCommit } from '../refs.ts';
import type { Repository } from '../repository.ts';
import { noteLanded } from '../workspace/branch-records.ts';

/** A path that differs between two commits. */
export interface ChangedPath {
  readonly path: string;
  readonly before: BlobEntry | undefined;
  readonly after: BlobEntry | undefined;
}

interface BlobEntry {
  readonly mode: string;
  readonly id: string;
}

/** Differences between commits that a landing asks for more than once. Commits are immutable. */
const recentChanges = new Map<string, readonly ChangedPath[]>();
const maxRecentChanges = 8;

/** Lists the paths that differ between two commits. */
export async function changedPaths(git: Git, from: string, to: string): Promise<readonly ChangedPath[]> {
  const key = `${from} ${to}`;
  const known = recentChanges.get(key);
  if (known) return known;
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', '--no-commit-id', from, to];
  const changes = parseRaw(await git.ok(args));
  const [oldest] = recentChanges.size < maxRecentChanges ? [] : recentChanges.keys();
  if (oldest !== undefined) recentChanges.delete(oldest);
  recentChanges.set(key, changes);
  return changes;
}

/** Parses `:<mode> <mode> <id> <id> <letter>\0<path>\0`. */
function parseRaw(raw: string): readonly ChangedPath[] {
  const fields = raw.split('\0');
  const entry = (mode = '', id = '') => (mode === '000000' ? undefined : { mode, id });
  return fields.slice(0, -1).flatMap((field, at) => {
    if (at % 2 === 1) return [];
    const [before, after, beforeId, afterId] = field.slice(1).split(' ');
    return { path: fields[at + 1] ?? '', before: entry(before, beforeId), after: entry(after, afterId) };
  });
}

/** A move of a branch that is about to begin. Kept until the move has ended, so that the next landing can undo the rest. */
export interface MoveIntent {
  readonly branch: string;
  readonly from: string;
  readonly to: string;
  /** Source branch with its tip, to note that it has landed. */
  readonly source?: { readonly branch: string; readonly tip: string } | undefined;
  /** Checkout of the branch, which moves too. */
  readonly checkout?: CheckoutIntent | undefined;
  /** Lock files of git that existed before. */
  readonly locks: readonly string[];
}

interface CheckoutIntent {
  readonly path: string;
  readonly gitDir: string;
  /** Paths that only `to` has, but that existed before as files which git does not track. */
  readonly present: readonly string[];
}

const intentFile = ({ commonDir }: Pick<Repository, 'commonDir'>): string =>
  join(commonDir, 'reprise', 'moving.json');

/** Records a move before it begins. Requires the `land` lock. */
export const intendMove = (repository: Repository, intent: Omit<MoveIntent, 'locks'>): void =>
  recordFile(
    intentFile(repository),
    `${JSON.stringify({ ...intent, locks: locksOf(repository, intent).filter(exists) })}\n`,
  );

/** Forgets a move that has ended. */
export const forgetMove = (repository: Repository): void => removeIfThere(intentFile(repository));

/** Lock files that git takes to move a branch and its checkout. */
function locksOf({ commonDir }: Repository, { branch, checkout }: Pick<MoveIntent, 'branch' | 'checkout'>) {
  const names = checkout ? ['index', 'HEAD', 'ORIG_HEAD'] : [];
  return [
    ...names.map(name => join(checkout?.gitDir ?? '', `${name}.lock`)),
    join(commonDir, 'refs', 'heads', `${branch}.lock`),
  ];
}

/** What a crash left that cannot be undone safely. */
export interface LeftBehind {
  readonly path: string;
  readonly why: string;
  readonly hint: string;
}

/**
 * Undoes a move that a crash interrupted, or notes that it succeeded. Git moves the branch last, so a branch that is still
 * at `from` has not landed. Requires the `land` lock: the process that began the move is dead, and so are its commands.
 */
export async function settleInterruptedMove(repository: Repository): Promise<LeftBehind | undefined> {
  const file = intentFile(repository);
  const intent = toIntent(readIfThere(file));
  if (intent === undefined) {
    forgetMove(repository);
    return undefined;
  }
  const since = statSync(file).mtimeMs;
  for (const lock of locksOf(repository, intent)) {
    if (!exists(lock)) continue;
    const isOurs = !intent.locks.includes(lock) && statSync(lock).mtimeMs >= since;
    if (!isOurs || !(await removeStaleLock(lock, intent.checkout?.path ?? repository.commonDir)))
      return { path: intent.checkout?.path ?? repository.commonDir, ...describeLock(lock) };
  }
  const { git } = repository;
  const { branch, from, to, source, checkout } = intent;
  const tip = await resolveCommit(git, `refs/heads/${branch}`);
  if (checkout && (tip === from || tip === to))
    await settleIn(git.with({ cwd: checkout.path }), { intent, checkout, tip });
  if (tip !== undefined && tip !== from && (await isWithin(git, to, tip)) && source)
    noteLanded(repository, { ...source, commit: to, moved: { onto: branch, from } });
  forgetMove(repository);
  return undefined;
}

const isWithin = async (git: Git, commit: string, tip: string): Promise<boolean> =>
  commit === tip || (await git.run(['merge-base', '--is-ancestor', commit, tip])).code === 0;

async function settleIn(
  git: Git,
  {
    intent: { branch, from, to },
    checkout: { path, present },
    tip,
  }: { readonly intent: MoveIntent; readonly checkout: CheckoutIntent; readonly tip: string },
): Promise<void> {
  if (!exists(path)) return;
  const head = await readHead(git);
  // The user has switched to another branch since; nothing of the move can be told apart any more.
  if (head?.branch !== branch || head.commit !== tip) return;
  const changes = await changedPaths(git, from, to);
  await (tip === from ? undoMove(git, { from, present, changes }) : completeFiles(git, changes));
}

/** Writes files again of which a power loss left only the beginning, after the branch had moved. */
async function completeFiles(git: Git, changes: readonly ChangedPath[]): Promise<void> {
  const hashes = await hashesOf(git, changes);
  const torn: string[] = [];
  for (const { path, before, after } of changes) {
    const hash = hashes.get(path);
    if (after === undefined || hash === undefined || hash === after.id || hash === before?.id) continue;
    if (await isPartOf(git, { path, before: undefined, after })) torn.push(path);
  }
  const input = torn.map(path => `${path}\0`).join('');
  if (torn.length > 0)
    await git.ok(['checkout-index', '--force', '-u', '-z', '--stdin'], { input, hooks: 'skip' });
}

export interface UndoRequest {
  readonly from: string;
  readonly changes: readonly ChangedPath[];
  readonly present: readonly string[];
}

/**
 * Resets index and files of a checkout to `from`, for paths that were clean before git began to update them. Returns the
 * paths with other content, which were changed since and stay as they are.
 */
export async function undoMove(
  git: Git,
  { from, changes, present }: UndoRequest,
): Promise<readonly string[]> {
  const own = changes.filter(({ path, before }) => before !== undefined || !present.includes(path));
  const hashes = await hashesOf(git, own);
  const kept: string[] = [];
  const restore: string[] = [];
  const remove: string[] = [];
  for (const change of own) {
    const { path, before, after } = change;
    if (isLink(before) || isLink(after)) continue;
    const hash = hashes.get(path);
    const isKnown = hash === undefined || hash === before?.id || hash === after?.id;
    if (!isKnown && !(await isPartOf(git, change))) kept.push(path);
    else if (before === undefined) remove.push(path);
    else restore.push(path);
  }
  // Removing comes first: it makes room on a full disk, and a folder may take the place of a file.
  for (const path of remove) removeWithFolders(git.cwd, path);
  const names = (paths: readonly string[]) => paths.map(path => `${path}\0`).join('');
  const staged = await stagedSince(git, from);
  const unstage = own.map(({ path }) => path).filter(path => staged.has(path));
  const reset = [
    '--literal-pathspecs',
    'reset',
    '--quiet',
    '--pathspec-from-file=-',
    '--pathspec-file-nul',
    from,
  ];
  if (unstage.length > 0) await git.ok(reset, { input: names(unstage), hooks: 'skip' });
  if (restore.length > 0)
    await git.ok(['checkout-index', '--force', '-z', '--stdin'], { input: names(restore), hooks: 'skip' });
  await git.run(['update-index', '-q', '--refresh'], { hooks: 'skip' });
  return kept;
}

/** Paths of the index that differ from a commit. Writing the index for nothing would fail on a full disk. */
const stagedSince = async (git: Git, from: string): Promise<ReadonlySet<string>> =>
  new Set(
    (await git.ok(['diff-index', '--cached', '--name-only', '-z', '--no-renames', from, '--'])).split('\0'),
  );

const isLink = (entry: BlobEntry | undefined): boolean => entry?.mode === '160000';

/** Blob ids of the files that exist, as git would store them. */
async function hashesOf(git: Git, changes: readonly ChangedPath[]): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  const files: string[] = [];
  for (const { path, before, after } of changes) {
    const place = join(git.cwd, path);
    const stat = statOf(place);
    if (stat?.isSymbolicLink())
      hashes.set(path, hashOf(readlinkSync(place), (before ?? after)?.id.length ?? 40));
    else if (stat?.isFile()) files.push(path);
  }
  if (files.length === 0) return hashes;
  const input = files.map(path => `${/["\\\n]/.test(path) ? quotedPath(path) : path}\n`).join('');
  const lines = (await git.ok(['hash-object', '--stdin-paths'], { input })).split('\n');
  for (const [index, path] of files.entries()) hashes.set(path, lines[index] ?? '');
  return hashes;
}

const hashOf = (text: string, length: number): string =>
  createHash(length === 64 ? 'sha256' : 'sha1')
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest('hex');

/** Whether a file is the beginning of one of the two versions: git was killed, or the disk was full, while it wrote. */
async function isPartOf(git: Git, { path, before, after }: ChangedPath): Promise<boolean> {
  const place = join(git.cwd, path);
  if (!statOf(place)?.isFile()) return false;
  const found = readFileSync(place, 'latin1');
  for (const entry of [after, before]) {
    if (entry === undefined) continue;
    const args = ['cat-file', '--filters', `--path=${path}`, entry.id];
    const { code, stdout } = await git.run(args, { encoding: 'bytes' });
    if (code === 0 && stdout.startsWith(found)) return true;
  }
  return false;
}

/** Removes a file, and folders that become empty, as git does. */
function removeWithFolders(top: string, path: string): void {
  removeIfPossible(() => unlinkSync(join(top, path)));
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
    const place = join(top, folder);
    if (!exists(place) || namesIn(place).length > 0) return;
    removeIfPossible(() => rmdirSync(place));
  }
}

function removeIfPossible(remove: () => void): void {
  try {
    remove();
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY'].some(code => hasCode(error, code))) throw error;
  }
}

function statOf(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

export const exists = (path: string): boolean => statOf(path) !== undefined;

function toIntent(text: string | undefined): MoveIntent | undefined {
  const { branch, from, to, source, checkout, locks } = parseRecord(text) ?? {};
  if (typeof branch !== 'string' || typeof from !== 'string' || typeof to !== 'string') return undefined;
  const { branch: name, tip } = parseRecord(JSON.stringify(source)) ?? {};
  const { path, gitDir, present } = parseRecord(JSON.stringify(checkout)) ?? {};
  return {
    branch,
    from,
    to,
    locks: textsIn(locks),
    ...(typeof name === 'string' && typeof tip === 'string' ? { source: { branch: name, tip } } : {}),
    ...(typeof path === 'string' && typeof gitDir === 'string'
      ? { checkout: { path, gitDir, present: textsIn(present) } }
      : {}),
  };
}

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(each => typeof each === 'string') : [];
