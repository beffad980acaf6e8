import {
  closeSync,
  constants,
  cpSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RepriseError, toEpochMs } from '../core/index.ts';
import { isOwnerAlive, openRepository, takeRepositoryLock } from '../git/index.ts';
import { allWorktrees } from '../git/workspace/index.ts';
import { thisProcess } from '../process/index.ts';
import { copyStore, mergeStore, openDatabase, type StoreUser } from '../store/sqlite/index.ts';
import { importMark, locateState, type StateRequest, storeFile } from './state.ts';

/** Age of the last heartbeat after which a worker of another host counts as dead. */
const silentMs = 30_000;

/** Parts of a state folder that histories refer to. Locks, checkouts and scratch files end with their processes. */
const broughtAlong = ['logs', 'journal', 'artifacts', 'adhoc'] as const;

type ImportPlace = Pick<StateRequest, 'root' | 'env'>;

interface ImportRequest extends ImportPlace {
  /** State folder of the repository. */
  readonly folder: string;
  /** Called after every step that changes something, for tests. */
  readonly reached?: ((step: string) => void) | undefined;
}

/** State that a former version kept in a checkout. */
interface FormerState {
  /** Folder `.reprise/state` of a project. */
  readonly folder: string;
  readonly root: string;
}

/**
 * Imports the state that former versions kept in every checkout and project, each once. A process that dies meanwhile
 * leaves either the old folder or the imported one, and the next command continues. Throws STORE_FAILED, and changes
 * nothing, if a process still uses one of them.
 */
export async function importStates(request: ImportRequest): Promise<void> {
  const { folder } = request;
  if ((await formerStates(request)).length === 0 && !existsSync(importMark(folder))) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const release = await lockImport(folder);
  try {
    await importAll(request);
  } finally {
    release();
  }
}

/** An exclusive transaction, which the kernel ends if this process dies. */
async function lockImport(folder: string): Promise<() => void> {
  const lock = await openDatabase({ file: join(folder, 'import.lock') });
  lock.exec('PRAGMA busy_timeout = 0');
  for (;;) {
    try {
      lock.exec('BEGIN EXCLUSIVE');
      return () => {
        lock.exec('ROLLBACK');
        lock.close();
      };
    } catch (error) {
      if (!/locked/.test(String(error))) throw error;
    }
    await delay(50);
  }
}

async function importAll(request: ImportRequest): Promise<void> {
  const { folder, reached = () => {} } = request;
  const states = await formerStates(request);
  const copy = join(folder, 'importing.db');
  const clean = () => {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${copy}${end}`, { force: true });
  };
  clean();
  // Every store is checked before the first one is changed.
  for (const state of states) await copyChecked(state, copy, request).finally(clean);
  if (states.length > 0) {
    writeFileSync(importMark(folder), '');
    syncFolder(folder);
    reached('marked');
  }
  for (const state of states) {
    if (await copyChecked(state, copy, request)) {
      reached('copied');
      if (existsSync(storeFile(folder))) await mergeStore({ from: copy, into: storeFile(folder) });
      else renameSync(copy, storeFile(folder));
      syncFolder(folder);
      reached('added');
      clean();
    }
    bringAlong(state.folder, folder);
    reached('brought along');
    writeFileSync(join(state.folder, '.gitignore'), '*\n');
    reached('ignored');
    renameSync(state.folder, unusedName(join(dirname(state.folder), 'state.imported')));
    syncFolder(dirname(state.folder));
    reached('renamed');
  }
  rmSync(importMark(folder), { force: true });
  reached('ended');
}

async function copyChecked(
  { folder, root }: FormerState,
  to: string,
  { env, folder: target }: ImportRequest,
): Promise<boolean> {
  const from = storeFile(folder);
  if (!existsSync(from)) return false;
  const { project, historyRoot } = locateState({ root, env });
  return copyStore({
    from,
    to,
    project,
    check: users => {
      const user = users.find(each => mayBeAlive(folder, each));
      if (user) throw stillUsed(user, folder, target);
    },
    moved: path => relative(historyRoot, join(root, path)),
  });
}

function mayBeAlive(folder: string, { lease, beat, ...owner }: StoreUser): boolean {
  if (isOwnerAlive(folder, { ...owner, incarnation: '' })) return true;
  if (owner.host === thisProcess().host) return false;
  const now = Date.now();
  return lease === undefined ? now - toEpochMs(beat ?? '') <= silentMs : toEpochMs(lease) > now;
}

const stillUsed = ({ pid, host, what }: StoreUser, from: string, to: string): RepriseError =>
  new RepriseError(
    'STORE_FAILED',
    `process ${pid} on ${host} (${what}) still uses ${from}, which has to move to ${to}; nothing was changed`,
    { hint: 'wait until it ends, or stop it, then try again' },
  );

/** Finds the former state of every project in every checkout. */
const formerStates = async (place: ImportPlace): Promise<readonly FormerState[]> =>
  (await projectRoots(place))
    .map(each => ({ root: each, folder: join(each, '.reprise', 'state') }))
    .filter(({ folder }) => isFolder(folder));

const keptMs = 30 * 24 * 60 * 60 * 1000;

/** Finds imported state that is older than 30 days. */
export async function expiredStates(place: ImportPlace, now: number): Promise<readonly string[]> {
  const roots = await projectRoots(place);
  return roots.flatMap(root =>
    entriesOf(join(root, '.reprise'))
      .filter(entry => entry.isDirectory() && /^state\.imported(-\d+)?$/.test(entry.name))
      .map(({ name }) => join(root, '.reprise', name))
      .filter(folder => {
        // The import writes this file last.
        const written = lstatSync(join(folder, '.gitignore'), { throwIfNoEntry: false });
        return written !== undefined && now - written.mtimeMs > keptMs;
      }),
  );
}

/** Folders of all checkouts that contain `.reprise`, in a fixed order. Workspaces of agents are not searched. */
async function projectRoots({ root, env }: ImportPlace): Promise<readonly string[]> {
  const opened = await openRepository({ cwd: root, inheritEnv: env });
  // Git fails if another process is creating a worktree at this moment.
  const worktrees = await allWorktrees(opened).catch(async () => {
    const owner = { ...thisProcess(), incarnation: 'import' };
    const lock = await takeRepositoryLock({ repository: opened, owner, name: 'worktrees' });
    return allWorktrees(lock.repository).finally(lock.release);
  });
  const tops = worktrees
    .map(({ path }) => path)
    .filter(path => !path.split(sep).join('/').includes('/.reprise/workspaces/'));
  return [...new Set([...tops.flatMap(top => [...projectsBelow(top)]), root])].sort();
}

function* projectsBelow(top: string): Generator<string> {
  const pending = [top];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const entries = entriesOf(folder);
    // Another repository or worktree.
    if (folder !== top && entries.some(({ name }) => name === '.git')) continue;
    for (const { name } of entries.filter(entry => entry.isDirectory())) {
      if (name === '.reprise') yield folder;
      else if (name !== '.git' && name !== 'node_modules') pending.push(join(folder, name));
    }
  }
}

const entriesOf = (folder: string) => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
};

const isFolder = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Copies every log, journal and artifact that is not there yet. A copy appears under its name once it is complete. */
function bringAlong(from: string, to: string): void {
  for (const part of broughtAlong) {
    for (const { name } of entriesOf(join(from, part))) {
      const target = join(to, part, name);
      const partial = join(to, part, `.importing-${name}`);
      if (existsSync(target)) continue;
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      rmSync(partial, { recursive: true, force: true });
      cpSync(join(from, part, name), partial, {
        recursive: true,
        preserveTimestamps: true,
        verbatimSymlinks: true,
        mode: constants.COPYFILE_FICLONE,
      });
      renameSync(partial, target);
    }
  }
}

function unusedName(path: string): string {
  let name = path;
  for (let number = 2; existsSync(name); number++) name = `${path}-${number}`;
  return name;
}

/** Makes the names in a folder durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
