import {
  accessSync,
  appendFileSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../core/index.ts';
import { gitNow, locateNow, mainWorktreeNow, safeSegment } from '../git/index.ts';
import { topProject } from '../store/index.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** Place of a project's state. */
export interface ProjectState {
  /** Absolute path of the folder for the store, logs, journals and artifacts. */
  readonly folder: string;
  /**
   * `given`: named by an option or a variable; `repository`: in git's common directory, for all worktrees and projects;
   * `folder`: below a project that is in no repository.
   */
  readonly kind: 'given' | 'repository' | 'folder';
  /** Path of the project relative to the top of its worktree. */
  readonly project: string;
  /** Folder for the slots of the project's agents. */
  readonly slots: string;
  /**
   * The project in the main worktree, which paths in histories are relative to; below the common directory if there is
   * no main worktree.
   */
  readonly historyRoot: string;
  /** Default folder of workspaces. It is never in a linked worktree, which git removes with all ignored files. */
  readonly workspaces: string;
}

export interface StateRequest {
  /** Absolute path of the project. */
  readonly root: string;
  readonly env: Variables;
  /** Absolute path that an option or a variable names. */
  readonly given?: string | undefined;
}

/** Finds the state of a project. Throws STORE_FAILED if git refuses the repository and no folder is given. */
export function locateState({ root, env, given }: StateRequest): ProjectState {
  const located = locateNow({ cwd: root, env });
  if (located.kind === 'refused' && given === undefined) throw refusedByGit(root, located.why);
  if (located.kind !== 'inside') {
    const folder = given ?? join(root, '.reprise', 'state');
    const kind = given === undefined ? 'folder' : 'given';
    return { folder, kind, project: topProject, slots: folder, ...below(root) };
  }
  const { commonDir, folder: project, worktree } = located;
  const own = join(commonDir, 'reprise');
  const top = worktree === 'linked' ? mainWorktreeNow(located, env) : undefined;
  const folder = given ?? own;
  return {
    folder,
    kind: given === undefined ? 'repository' : 'given',
    project,
    slots: project === topProject ? folder : join(folder, 'projects', safeSegment(project)),
    ...(worktree === 'main'
      ? below(root)
      : top === undefined
        ? { historyRoot: own, workspaces: join(own, 'workspaces') }
        : below(join(top, project))),
  };
}

const below = (root: string) => ({ historyRoot: root, workspaces: join(root, '.reprise', 'workspaces') });

const elsewhere = 'or name another folder for the state: REPRISE_STATE_DIR=<folder>';

const refusedByGit = (root: string, why: string) =>
  new RepriseError('STORE_FAILED', `git refuses the repository of ${root}, which holds the state: ${why}`, {
    hint: `follow the advice of git, ${elsewhere}`,
  });

export const storeFile = (stateDir: string): string => join(stateDir, 'reprise.db');

/** Whether the store exists. Throws STORE_FAILED if that cannot be seen. */
export function isStoreThere(stateDir: string): boolean {
  const file = storeFile(stateDir);
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw unreadable(file, error);
  }
}

/** Names the first part of the path that this process may not use. */
function unreadable(file: string, cause: unknown): RepriseError {
  let found: { readonly path: string; readonly stats: Stats } | undefined;
  for (let path = file; ; path = dirname(path)) {
    const stats = statOf(path);
    if (stats) {
      found = { path, stats };
      break;
    }
    if (dirname(path) === path) break;
  }
  const place = found
    ? `${found.path} has mode ${modeOf(found.stats)} and belongs to user ${found.stats.uid}`
    : file;
  return new RepriseError('STORE_FAILED', `the state ${dirname(file)} cannot be read: ${place}`, {
    hint: `run as that user, change the owner of the folder, ${elsewhere}`,
    cause,
  });
}

const modeOf = ({ mode }: Stats): string => (mode & 0o777).toString(8).padStart(4, '0');

export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

export function notWritable(folder: string, cause: unknown): RepriseError {
  const stats = statOf(folder);
  return new RepriseError(
    'STORE_FAILED',
    `the folder of the state ${folder} cannot be written${stats ? `: its mode is ${modeOf(stats)}` : ''}`,
    { hint: `make it writable, ${elsewhere}`, cause },
  );
}

/** Exists while an import has begun and not ended. */
export const importMark = (folder: string): string => join(folder, 'importing');

export const ignoredFolders = ['.reprise/workspaces/'];

/**
 * Excludes the folders that Reprise writes to from git, without changing a committed file. Returns the path of the
 * exclude file. Does nothing outside a repository, or if the repository is not writable.
 */
export function excludeFromGit(root: string, env: Variables): string | undefined {
  const args = ['rev-parse', '--path-format=absolute', '--show-prefix', '--git-path', 'info/exclude'];
  const answer = gitNow({ cwd: root, env }, args);
  if (answer === undefined) return undefined;
  const [prefix = '', ...rest] = answer.split('\n');
  const file = rest.join('\n');
  try {
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const known = new Set(before.split(/\r?\n/));
    const missing = patternsFor(prefix.replace(/\/$/, '')).filter(pattern => !known.has(pattern));
    if (missing.length === 0) return file;
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, `${before === '' || before.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`);
    return file;
  } catch {
    // Runs do not depend on it, and `reprise doctor` reports it.
    return undefined;
  }
}

/** Makes git ignore the workspaces of a project that is used for the first time. */
export function excludeWorkspaces({
  root,
  env,
  state,
  host,
}: Pick<StateRequest, 'root' | 'env'> & { readonly state: ProjectState } & {
  readonly host?: object | undefined;
}): void {
  const isKnown =
    isStoreThere(state.folder) && (state.project === topProject || existsSync(state.workspaces));
  if (!host && !isKnown) excludeFromGit(root, env);
}

/** A pattern that contains a slash is relative to the root of the worktree. */
function patternsFor(folder: string): readonly string[] {
  if (folder === '') return ignoredFolders;
  const prefix = folder.replace(/[\\*?[\]!# ]/g, '\\$&');
  return ignoredFolders.map(ignored => `/${prefix}/${ignored}`);
}
