import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { agentPackages } from './versions.ts';

type AgentPackage = keyof typeof agentPackages;

/** Paths of the installed programs. */
export type InstalledAgents = Readonly<Record<AgentPackage, string>>;

const cache = resolve('node_modules/.cache/reprise-agents');
const all = Object.keys(agentPackages) as AgentPackage[];

const folderOf = (agent: AgentPackage): string =>
  join(cache, `${agent}-${agentPackages[agent].version}-${process.platform}-${process.arch}`);

const programOf = (agent: AgentPackage): string =>
  join(folderOf(agent), 'node_modules', '.bin', agentPackages[agent].program);

/** Returns the installed agents, or `undefined` if they could not be installed. */
export function installedAgents(): InstalledAgents | undefined {
  if (!all.every(agent => existsSync(programOf(agent)))) return undefined;
  return Object.fromEntries(all.map(agent => [agent, programOf(agent)])) as unknown as InstalledAgents;
}

/** Installs missing agents. Throws with the output of npm. */
export function installAgents(): void {
  mkdirSync(cache, { recursive: true });
  for (const agent of all) if (!existsSync(programOf(agent))) install(agent);
}

/** Installs into a temporary folder and renames it, so that an interrupted or parallel run leaves no partial install. */
function install(agent: AgentPackage): void {
  const { name, version } = agentPackages[agent];
  const folder = mkdtempSync(join(cache, 'installing-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    run(folder, 'npm', ['install', ...options(agent), `${name}@${version}`]);
    // Do the work of their `postinstall` scripts, which select the program for this platform.
    if (agent === 'claude') run(folder, process.execPath, [join('node_modules', name, 'install.cjs')]);
    if (agent === 'opencode') run(folder, process.execPath, [join('node_modules', name, 'postinstall.mjs')]);
    if (!existsSync(programOf(agent))) renameSync(folder, folderOf(agent));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const options = (agent: AgentPackage): readonly string[] => [
  ...['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'],
  '--fetch-retries=1',
  // The packages require a newer Node, but also run on this one.
  '--engine-strict=false',
  // Do not install a second copy of Claude Code; it uses the existing one.
  ...(agent === 'acp' ? ['--omit=optional'] : []),
];

function run(cwd: string, program: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')} failed:\n${error?.message ?? `${stderr}${stdout}`}`);
}
