import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The agents that the tests run with. What they print changes from release to release, so each is pinned. */
const packages = {
  claude: { name: '@anthropic-ai/claude-code', version: '2.1.325', program: 'claude' },
  codex: { name: '@openai/codex', version: '0.166.0', program: 'codex' },
  acp: { name: '@agentclientprotocol/claude-agent-acp', version: '0.99.1', program: 'claude-agent-acp' },
} as const;

type AgentPackage = keyof typeof packages;

/** The programs, as `npm install` leaves them. */
export type InstalledAgents = Readonly<Record<AgentPackage, string>>;

const cache = resolve('node_modules/.cache/reprise-agents');
const all = Object.keys(packages) as AgentPackage[];

const folderOf = (agent: AgentPackage): string =>
  join(cache, `${agent}-${packages[agent].version}-${process.platform}-${process.arch}`);

const programOf = (agent: AgentPackage): string =>
  join(folderOf(agent), 'node_modules', '.bin', packages[agent].program);

/** Where the agents are; `undefined` if they could not be installed. */
export function installedAgents(): InstalledAgents | undefined {
  if (!all.every(agent => existsSync(programOf(agent)))) return undefined;
  return { claude: programOf('claude'), codex: programOf('codex'), acp: programOf('acp') };
}

/** Installs what is missing. Throws with what npm said. */
export function installAgents(): void {
  mkdirSync(cache, { recursive: true });
  for (const agent of all) if (!existsSync(programOf(agent))) install(agent);
}

/** Beside its place first, and there as a whole: a run that is stopped, or a second one, leaves no half of it. */
function install(agent: AgentPackage): void {
  const { name, version } = packages[agent];
  const folder = mkdtempSync(join(cache, 'installing-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    run(folder, 'npm', ['install', ...options(agent), `${name}@${version}`]);
    // What its `postinstall` does: it puts the program of this platform in its place.
    if (agent === 'claude') run(folder, process.execPath, [join('node_modules', name, 'install.cjs')]);
    if (!existsSync(programOf(agent))) renameSync(folder, folderOf(agent));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const options = (agent: AgentPackage): readonly string[] => [
  ...['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'],
  '--fetch-retries=1',
  // They say that they want a newer Node, and run on this one.
  '--engine-strict=false',
  // It would bring a second copy of Claude Code, and takes the one that is there.
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
