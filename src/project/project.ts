import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { WorktreeSettings } from '../engine/environment.ts';
import { shellWord } from '../terminal/words.ts';
import { formatProblem, type Problem } from '../workflow/problems.ts';
import type { Config } from '../workflow/yaml/config.ts';
import { type CommandIo, everyTime, type Host } from './host.ts';

interface TextFile {
  readonly file: string;
  /** For messages. */
  readonly displayFile: string;
  /** The error that says what is wrong with the file. */
  readonly refuse: (problem: Problem) => Error;
}

const lineFeed = 0x0a;

/** The text of a file. Throws what `refuse` gives if it is not UTF-8: a replaced character would change what it means. */
export function readText({ file, displayFile, refuse }: TextFile): string {
  const bytes = readFileSync(file);
  const text = decode(bytes);
  if (text !== undefined) return text;
  throw refuse({
    message: 'the file is not valid UTF-8',
    hint: 'save it as UTF-8',
    position: { file: displayFile, ...firstFault(bytes) },
  });
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** A line feed is never part of another character, so each line can be looked at alone. */
function firstFault(bytes: Uint8Array): { readonly line: number; readonly column: number } {
  for (let line = 1, start = 0; ; line++) {
    const found = bytes.indexOf(lineFeed, start);
    const end = found === -1 ? bytes.length : found;
    const content = bytes.subarray(start, end);
    if (found === -1 || decode(content) === undefined)
      return { line, column: new TextDecoder().decode(content).indexOf('\uFFFD') + 1 };
    start = end + 1;
  }
}

/** Where a command works. */
export interface Project {
  /** Where shell steps run and what recorded paths are relative to. */
  readonly root: string;
  /** The store, logs and scratch files. */
  readonly stateDir: string;
  /** What a command for this project ends with: ` --state-dir x` if that was given, or else nothing. */
  readonly commandSuffix: string;
  /** Stands in for the real world: in test cases. */
  readonly host?: Host | undefined;
}

export interface ProjectOptions {
  /** Relative to the current folder. */
  readonly stateDir?: string | undefined;
}

const marks = ['.reprise', 'reprise.yaml', '.git'];

/** The nearest folder that looks like the root of a project, or else the current one. */
export function findProject({ cwd, env, host }: CommandIo, { stateDir }: ProjectOptions = {}): Project {
  const root = findUpwards(cwd, folder => marks.some(mark => existsSync(join(folder, mark)))) ?? cwd;
  const fromEnv = env['REPRISE_STATE_DIR'];
  if (stateDir)
    return { root, stateDir: resolve(cwd, stateDir), commandSuffix: commandSuffix(stateDir), host };
  return {
    root,
    host,
    stateDir: fromEnv ? resolve(root, fromEnv) : join(root, '.reprise', 'state'),
    commandSuffix: '',
  };
}

/** What a command has to end with to work in the same state folder, as it was typed. */
export const commandSuffix = (stateDir: string): string => ` --state-dir ${shellWord(stateDir)}`;

/** The first folder that fits, from `start` up. */
export function findUpwards(start: string, fits: (folder: string) => boolean): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    if (fits(folder)) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

export const configFile = ({ root }: Project): string => join(root, 'reprise.yaml');

/** The settings of the project; none without a `reprise.yaml`. Throws CONFIG_INVALID. */
export const readConfig = (project: Project, io: CommandIo): Promise<Config> =>
  (project.host?.once ?? everyTime)(`settings seen from ${io.cwd}`, () => loadSettings(project, io));

async function loadSettings(project: Project, io: CommandIo): Promise<Config> {
  const file = configFile(project);
  if (!existsSync(file)) return {};
  const { loadConfig } = await import('../workflow/yaml/config.ts');
  const displayFile = displayPath(io, file);
  const refuse = (problem: Problem) =>
    new RepriseError('CONFIG_INVALID', formatProblem(problem), { position: problem.position });
  const { agentRules } = await import('../agents/definitions.ts');
  return loadConfig({ file, displayFile, text: readText({ file, displayFile, refuse }) }, agentRules);
}

/** How workspaces are made, as far as the settings say. */
export function worktreesOf({ root }: Project, { worktrees }: Config): Partial<WorktreeSettings> {
  if (!worktrees) return {};
  const { folder, ...rest } = worktrees;
  return { ...rest, ...(folder === undefined ? {} : { folder: resolve(root, folder) }) };
}

/** The path as somebody in the current folder would type it. */
export const displayPath = ({ cwd }: CommandIo, file: string): string => relative(cwd, file) || '.';

export const ignoredFolders = ['.reprise/state/', '.reprise/workspaces/'];

/**
 * Keeps git from seeing what Reprise writes below `root`, without touching a file that is committed. Gives the file that
 * says so. Does nothing outside a repository or where the repository cannot be written to.
 */
export function excludeFromGit(root: string): string | undefined {
  const top = findUpwards(root, folder => existsSync(join(folder, '.git')));
  if (top === undefined) return undefined;
  try {
    const gitFolder = commonGitFolder(join(top, '.git'));
    if (!existsSync(join(gitFolder, 'HEAD'))) return undefined;
    const file = join(gitFolder, 'info', 'exclude');
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const known = new Set(before.split(/\r?\n/));
    const missing = patternsFor(relative(top, root)).filter(pattern => !known.has(pattern));
    if (missing.length === 0) return file;
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, `${before === '' || before.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`);
    return file;
  } catch {
    // Runs do not depend on it; `reprise doctor` tells.
    return undefined;
  }
}

/** A linked worktree and a submodule have a file that leads to the folder; worktrees share the one of the first. */
function commonGitFolder(dotGit: string): string {
  if (statSync(dotGit).isDirectory()) return dotGit;
  const link = /^gitdir: (.*)$/m.exec(readFileSync(dotGit, 'utf8'))?.[1] ?? '';
  const folder = resolve(dirname(dotGit), link.trim());
  const common = join(folder, 'commondir');
  return existsSync(common) ? resolve(folder, readFileSync(common, 'utf8').trim()) : folder;
}

/** Patterns with a slash inside count from the top of the worktree. */
function patternsFor(folder: string): readonly string[] {
  if (folder === '') return ignoredFolders;
  const prefix = folder
    .split(sep)
    .join('/')
    .replace(/[\\*?[\]!# ]/g, '\\$&');
  return ignoredFolders.map(ignored => `/${prefix}/${ignored}`);
}
