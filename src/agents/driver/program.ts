import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { isProtected, RepriseError } from '../../core/index.ts';
import { runProgram } from '../../process/index.ts';
import type { AgentDefinition, AgentKind } from '../agent.ts';
import type { SessionHost, SessionRequest } from '../session.ts';

const usualPrograms: Readonly<Record<AgentKind, string | undefined>> = {
  claude: 'claude',
  codex: 'codex',
  acp: undefined,
  command: undefined,
  scripted: undefined,
};

/** Returns the configured program and its first arguments, or the usual program of the kind. */
export function commandOf({ kind, command }: AgentDefinition): readonly string[] {
  if (command && command.length > 0) return command;
  const program = usualPrograms[kind];
  return program === undefined ? [] : [program];
}

const installs: Readonly<Record<string, string>> = {
  claude: 'npm install -g @anthropic-ai/claude-code',
  codex: 'npm install -g @openai/codex',
  gemini: 'npm install -g @google/gemini-cli',
  opencode: 'npm install -g opencode-ai',
  qwen: 'npm install -g @qwen-code/qwen-code',
  copilot: 'npm install -g @github/copilot',
  'claude-agent-acp': 'npm install -g @agentclientprotocol/claude-agent-acp',
  'codex-acp': 'npm install -g @agentclientprotocol/codex-acp',
};

/** Returns a hint with the command that installs a program. */
export const howToInstall = (program: string): string => {
  const command = Object.hasOwn(installs, program) ? installs[program] : undefined;
  return command ? `install it: ${command}` : `install \`${program}\`, or correct \`command\` and PATH`;
};

/** Returns the path of the program to start. Throws AGENT_NOT_FOUND. */
export function locateProgram(agent: AgentDefinition, argv: readonly string[], where: ProgramSearch): string {
  const name = argv[0] ?? '';
  const found = findProgram(name, where);
  if (found === undefined) {
    throw new RepriseError(
      'AGENT_NOT_FOUND',
      `the agent \`${agent.name}\` needs \`${name}\`, which was not found`,
      {
        hint: howToInstall(name),
      },
    );
  }
  return agent.kind === 'codex' ? (nativeCodex(found) ?? found) : found;
}

interface ProgramSearch {
  readonly path: string | undefined;
  readonly cwd: string;
}

/** Looks a program up on `PATH`, or in `cwd` if its name contains a slash. Returns `undefined` if there is none. */
export function findProgram(
  name: string,
  { path = '/usr/bin:/bin', cwd }: ProgramSearch,
): string | undefined {
  if (isAbsolute(name) || name.includes('/')) return onlyIfProgram(resolve(cwd, name));
  for (const folder of path.split(delimiter)) {
    const found = onlyIfProgram(join(folder === '' ? cwd : folder, name));
    if (found) return found;
  }
  return undefined;
}

function onlyIfProgram(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}

const deepest = 5;

/**
 * Returns the native program behind the Node wrapper that npm installs as `codex`. Killing the wrapper would leave the
 * program running until the end of its turn. Returns `undefined` if the file is not a wrapper or the program is missing.
 */
export function nativeCodex(file: string): string | undefined {
  const real = realPath(file);
  if (real === undefined || !/\.[cm]?js$/.test(real)) return undefined;
  const packageFolder = dirname(dirname(real));
  const platform = `codex-${process.platform}-${process.arch}`;
  const places = [
    join(packageFolder, 'node_modules', '@openai', platform),
    join(dirname(packageFolder), platform),
    join(packageFolder, 'vendor'),
  ];
  for (const place of places) {
    const found = findBelow(place, deepest);
    if (found) return found;
  }
  return undefined;
}

function findBelow(folder: string, depth: number): string | undefined {
  const entries = entriesOf(folder);
  const name = process.platform === 'win32' ? 'codex.exe' : 'codex';
  const here = entries.find(entry => entry.isFile() && entry.name === name);
  if (here && isExecutable(join(folder, name))) return join(folder, name);
  if (depth === 0) return undefined;
  for (const entry of entries) {
    if (!entry.isDirectory() || isForAnotherMachine(entry.name)) continue;
    const found = findBelow(join(folder, entry.name), depth - 1);
    if (found) return found;
  }
  return undefined;
}

const cpus: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };
const systems: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'apple', win32: 'windows' };

/** A package for all platforms has sibling folders such as `aarch64-apple-darwin`. */
const isForAnotherMachine = (name: string): boolean =>
  /^(x86_64|aarch64)-/.test(name) &&
  !(name.startsWith(`${cpus[process.arch]}-`) && name.includes(`-${systems[process.platform]}`));

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Patterns of settings in the root of a workspace that can name MCP servers, for files that git does not track. */
const settingsAtRoot = [
  '.mcp.json',
  '.claude',
  '.gemini',
  '.qwen',
  'opencode.json',
  'opencode.jsonc',
  '.opencode',
];

/** Whether protected files of the workspace differ from its base commit. Unknown counts as different. */
export async function hasOtherSettings(
  { base, cwd, permissions }: SessionRequest,
  { inheritEnv: env }: SessionHost,
): Promise<boolean> {
  if (base === undefined) return false;
  const git = (...args: readonly string[]) =>
    runProgram(['git', '-c', 'core.fsmonitor=false', ...args], { cwd, env });
  const answers = await Promise.all([
    git('diff', '--name-only', '--no-renames', '--no-ext-diff', '--no-textconv', '-z', base, '--'),
    git('ls-files', '-z', '--others', '--', ...settingsAtRoot),
  ]).catch(() => []);
  if (answers.length === 0 || answers.some(({ code }) => code !== 0)) return true;
  const files = answers.flatMap(({ stdout }) => stdout.toString().split('\0'));
  return files.some(file => file !== '' && isProtected(file, permissions.protect));
}
