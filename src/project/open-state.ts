import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../core/index.ts';
import { gitNow } from '../git/index.ts';
import type { EventStore } from '../store/index.ts';
import {
  importMark,
  isStoreThere,
  notWritable,
  type ProjectState,
  type StateRequest,
  statOf,
  storeFile,
} from './state.ts';

export interface OpenStateOptions extends Pick<StateRequest, 'root' | 'env'> {
  readonly state: ProjectState;
  readonly mode: StoreMode;
  /** Whether the store is opened for all projects instead of this one. */
  readonly all?: boolean | undefined;
}

export type StoreMode = 'readonly' | 'writable';

/**
 * Opens the store of a project. Imports the state of former versions before its first use. A store that does not exist
 * is created, or `undefined` if `readonly`. Throws STORE_FAILED, STORE_NEWER.
 */
export async function openState(
  options: OpenStateOptions & { readonly mode: 'writable' },
): Promise<EventStore>;
export async function openState(options: OpenStateOptions): Promise<EventStore | undefined>;
export async function openState(options: OpenStateOptions): Promise<EventStore | undefined> {
  const { state, mode, root, env } = options;
  const project = options.all ? null : state.project;
  const { folder } = state;
  const isThere = isStoreThere(folder);
  if (state.kind === 'repository' && needsImport(folder, { root, isThere })) {
    const { importStates } = await import('./import-state.ts');
    await importStates({ folder, root, env });
  }
  if (!isStoreThere(folder)) {
    if (mode === 'readonly') {
      requireWritable(state);
      return undefined;
    }
    makeStateFolder(options);
  }
  const store = await (mode === 'readonly' ? openToRead(folder, project) : openStore(folder, { project }));
  repairModes(folder, options);
  return store;
}

/** Finds state of former versions that was imported more than 30 days ago. */
export const expiredStates = async (
  place: Pick<StateRequest, 'root' | 'env'>,
  now: number,
): Promise<readonly string[]> => (await import('./import-state.ts')).expiredStates(place, now);

/** A store of an older version is migrated first. `undefined` while another process is creating the store. */
async function openToRead(folder: string, project: string | null): Promise<EventStore | undefined> {
  try {
    return await openStore(folder, { readonly: true, project });
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    if (error.code === 'STORE_EMPTY') return undefined;
    if (error.code !== 'STORE_OLDER') throw error;
    await (await openStore(folder)).close();
    return openStore(folder, { readonly: true, project });
  }
}

/** Opens the store in a folder. Throws STORE_FAILED, STORE_NEWER. */
export async function openStore(
  stateDir: string,
  options: {
    readonly readonly?: boolean;
    readonly durable?: boolean;
    readonly project?: string | null;
  } = {},
): Promise<EventStore> {
  const { openSqliteStore } = await import('../store/sqlite/store.ts');
  return openSqliteStore({ ...options, file: storeFile(stateDir) });
}

/** A folder that cannot be written would never get a store, so "no runs yet" would be wrong. */
function requireWritable({ kind, folder }: ProjectState): void {
  if (kind !== 'repository') return;
  const parent = existsSync(folder) ? folder : dirname(folder);
  try {
    accessSync(parent, constants.W_OK);
  } catch (cause) {
    throw notWritable(parent, cause);
  }
}

/** Creates the folder of the state, for its owner only. Throws STORE_FAILED. */
function makeStateFolder({ state: { folder, kind }, root, env }: OpenStateOptions): void {
  try {
    const isNew = mkdirSync(folder, { recursive: true, mode: isShared({ root, env }) ? 0o777 : 0o700 });
    repairModes(folder, { root, env });
    if (kind !== 'repository' && isNew !== undefined) writeFileSync(join(folder, '.gitignore'), '*\n');
  } catch (cause) {
    throw notWritable(existsSync(folder) ? folder : dirname(folder), cause);
  }
}

const isShared = ({ root, env }: Pick<StateRequest, 'root' | 'env'>): boolean => {
  const shared = gitNow({ cwd: root, env }, ['config', '--get', 'core.sharedRepository']) ?? '';
  return !['', 'umask', 'false', '0'].includes(shared.toLowerCase());
};

/**
 * Makes the folder and its entries accessible only to their owner: logs and histories contain what scripts print.
 * Leaves files of other users alone, and everything if the repository is shared.
 */
function repairModes(folder: string, place: Pick<StateRequest, 'root' | 'env'>): void {
  const entries = readdirSync(folder).map(name => join(folder, name));
  const open = [folder, ...entries].flatMap(path => {
    const stats = statOf(path);
    const isOurs = stats !== undefined && (process.getuid === undefined || stats.uid === process.getuid());
    return isOurs && (stats.mode & 0o077) !== 0 ? [{ path, mode: stats.isDirectory() ? 0o700 : 0o600 }] : [];
  });
  if (open.length === 0 || isShared(place)) return;
  for (const { path, mode } of open) {
    try {
      chmodSync(path, mode);
    } catch {
      // Another process has removed the file.
    }
  }
}

/** Whether a former version left state in this project, or the state of the repository was never searched for. */
function needsImport(
  folder: string,
  { root, isThere }: { readonly root: string; readonly isThere: boolean },
): boolean {
  return !isThere || existsSync(importMark(folder)) || existsSync(join(root, '.reprise', 'state'));
}
