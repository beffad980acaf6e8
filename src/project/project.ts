import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { CommandIo } from '../commands/io.ts';
import { readText } from '../commands/read-text.ts';
import { RepriseError } from '../core/errors.ts';
import type { WorktreeSettings } from '../engine/environment.ts';
import { shellWord } from '../terminal/words.ts';
import { formatProblem, type Problem } from '../workflow/problems.ts';
import type { Config } from '../workflow/yaml/config.ts';
import { everyTime, type Host } from './host.ts';

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
