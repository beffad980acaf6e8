import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { RepriseError } from '../core/index.ts';
import { FileRefusedError, fileLimits, readBoundedFile } from '../effects/index.ts';
import type { WorktreeSettings } from '../engine/index.ts';
import { shellWord } from '../terminal/index.ts';
import { formatProblem, type Problem } from '../workflow/index.ts';
import type { Config } from '../workflow/yaml/index.ts';
import { type CommandIo, everyTime, type Host } from './host.ts';
import { locateState, type ProjectState } from './state.ts';

interface TextFile {
  readonly file: string;
  /** Path to show in messages. */
  readonly displayFile: string;
  /** Creates the error to throw. */
  readonly refuse: (problem: Problem) => Error;
}

const lineFeed = 0x0a;

/**
 * Reads a text file. Throws the error of `refuse` if it is too large to parse, not a regular file, or not UTF-8: replaced
 * characters could change its meaning.
 */
export function readText({ file, displayFile, refuse }: TextFile): string {
  const bytes = readDefinition({ file, displayFile, refuse });
  const text = decode(bytes);
  if (text !== undefined) return text;
  throw refuse({
    message: 'the file is not valid UTF-8',
    hint: 'save it as UTF-8',
    position: { file: displayFile, ...firstFault(bytes) },
  });
}

function readDefinition({ file, displayFile, refuse }: TextFile): Buffer {
  try {
    return readBoundedFile(file, { maxBytes: fileLimits.definition });
  } catch (error) {
    if (!(error instanceof FileRefusedError)) throw error;
    const position = { file: displayFile, line: 1, column: 1 };
    throw refuse({ message: `the file ${error.message}`, position });
  }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Checks line by line, because a line feed is never part of another character. */
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

/** Project that a command works in. */
export interface Project {
  /** Absolute path of the folder that shell steps run in and recorded paths are relative to. */
  readonly root: string;
  /** Environment variables of the command. */
  readonly env: CommandIo['env'];
  /** Place of the state. It is looked up on first use, because that starts git. Throws STORE_FAILED. */
  readonly state: ProjectState;
  /** Absolute path of the folder for the store, logs and scratch files. */
  readonly stateDir: string;
  /** Suffix for suggested commands: ` --state-dir x` if that option was given, otherwise empty. */
  readonly commandSuffix: string;
  /** Replacement for the real world in test cases. */
  readonly host?: Host | undefined;
}

/** The project that a command works on, and its input and output. */
export interface ProjectContext {
  readonly project: Project;
  readonly io: CommandIo;
}

export interface ProjectOptions {
  /** Path relative to the current folder. */
  readonly stateDir?: string | undefined;
}

const marks = ['.reprise', 'reprise.yaml', '.git'];
const marksOfBare = ['HEAD', 'objects', 'refs'];

const isProject = (folder: string): boolean => {
  const has = (name: string) => existsSync(join(folder, name));
  return marks.some(has) || (basename(folder) !== '.git' && marksOfBare.every(has));
};

/** Finds the nearest parent folder that looks like the root of a project. Defaults to the current folder. */
export function findProject({ cwd, env, host }: CommandIo, { stateDir }: ProjectOptions = {}): Project {
  const root = findUpwards(cwd, isProject) ?? cwd;
  const fromEnv = env['REPRISE_STATE_DIR'];
  const given = stateDir ? resolve(cwd, stateDir) : fromEnv ? resolve(root, fromEnv) : undefined;
  let found: ProjectState | undefined;
  const locate = () => {
    found ??= host ? locatedOnStage(root, given, env) : locateState({ root, env, given });
    return found;
  };
  return {
    root,
    env,
    host,
    get state() {
      return locate();
    },
    get stateDir() {
      return given ?? locate().folder;
    },
    commandSuffix: stateDir ? commandSuffix(stateDir) : '',
  };
}

const stages = new Map<string, ProjectState>();

/** A test performs many commands in one repository, and starting git for each would take most of the time. */
function locatedOnStage(root: string, given: string | undefined, env: CommandIo['env']): ProjectState {
  const key = `${root}\0${given ?? ''}`;
  const known = stages.get(key) ?? locateState({ root, env, given });
  if (known.kind === 'repository') stages.set(key, known);
  return known;
}

/** Returns the option that makes a suggested command use the same state folder. */
export const commandSuffix = (stateDir: string): string => ` --state-dir ${shellWord(stateDir)}`;

/** Returns the first folder that fits, from `start` upwards. */
export function findUpwards(start: string, fits: (folder: string) => boolean): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    if (fits(folder)) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

export const configFile = ({ root }: Project): string => join(root, 'reprise.yaml');

/** Reads the settings of the project. Empty without a `reprise.yaml`. Throws CONFIG_INVALID. */
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

/** Returns the time to wait for a stalled process that holds a lock. */
export const lockTimeoutOf = ({ lockTimeoutMs = 600_000 }: Config): number => lockTimeoutMs;

/** Returns the settings for workspaces, with an absolute folder. */
export function worktreesOf({ root }: Project, { worktrees, protect }: Config): Partial<WorktreeSettings> {
  const { folder, ...rest } = worktrees ?? {};
  return {
    ...rest,
    ...(protect ? { protect } : {}),
    ...(folder === undefined ? {} : { folder: resolve(root, folder) }),
  };
}

/** Returns the absolute folder of the workspaces. */
export const workspacesOf = (project: Project, config: Config): string =>
  worktreesOf(project, config).folder ?? project.state.workspaces;

/** Returns a path relative to the current folder, for messages. */
export const displayPath = ({ cwd }: CommandIo, file: string): string => relative(cwd, file) || '.';
