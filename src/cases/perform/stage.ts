import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Environment } from '../../engine/environment.ts';
import { restoreBase } from '../../git/delta/pack.ts';
import { createGit, type Git } from '../../git/git.ts';
import type { RunProgram } from '../../process/program.ts';
import { Starter } from '../../process/shell-pool.ts';
import { thisProcess } from '../../process/table.ts';
import { definitionFiles } from '../../project/journal/run-journal.ts';
import { openStore } from '../../project/open-engine.ts';
import { excludeFromGit } from '../../project/project.ts';
import { initRepository } from '../../testing/init-repository.ts';
import { putClaims } from '../../testing/put-claims.ts';
import type { Packages, TestContext } from '../context.ts';
import type { CaseManifest } from '../manifest/manifest.ts';

/** A repository in a folder of its own, in which a case is played. */
export interface Stage {
  /** Holds everything; gone when the case is over. */
  readonly folder: string;
  readonly repo: string;
  readonly home: string;
  readonly git: Git;
  /** Starts git for whoever works here. */
  readonly runProgram: RunProgram;
  /** The commit that the case begins from. */
  readonly base: string;
  remove(): void;
}

/** The same names and dates wherever a case is played, so that the same work gives the same commits. */
export const fixedEnvironment = {
  GIT_AUTHOR_NAME: 'Case',
  GIT_AUTHOR_EMAIL: 'case@localhost',
  GIT_AUTHOR_DATE: '@1767225600 +0000',
  GIT_COMMITTER_NAME: 'Case',
  GIT_COMMITTER_EMAIL: 'case@localhost',
  GIT_COMMITTER_DATE: '@1767225600 +0000',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
  NO_COLOR: '1',
  TZ: 'UTC',
  USER: 'case',
} as const;

export interface StageOptions {
  readonly manifest: CaseManifest;
  /** The folder of the case. */
  readonly caseFolder: string;
  /** The project that the case belongs to. */
  readonly project: string;
  readonly packages: Packages;
  readonly path: string | undefined;
  /** Where its folder is made: that for temporary files unless it is said. */
  readonly within?: string | undefined;
}

/** What the folder of a stage is called, up to what makes it unique. */
export const stagePrefix = 'reprise-case-';

/** Says which process made the stage: without it, the stage is of no use any more. */
export const ownerFile = (stageFolder: string): string => join(stageFolder, 'owner.json');

/** The stage of a case in the project that it belongs to. Throws GIT_FAILED. */
export const stageOf = (
  { folder }: { readonly folder: string },
  manifest: CaseManifest,
  { cwd, packages, env }: TestContext,
  { within }: Pick<StageOptions, 'within'> = {},
): Promise<Stage> =>
  setStage({ manifest, caseFolder: folder, project: cwd, packages, path: env['PATH'], within });

/** Makes the repository that a case begins with. Throws GIT_FAILED. */
export async function setStage(options: StageOptions): Promise<Stage> {
  const { packages, path, within = tmpdir() } = options;
  const folder = realpathSync(mkdtempSync(join(within, stagePrefix)));
  const starter = new Starter(folder);
  const remove = () => {
    starter.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    writeFileSync(ownerFile(folder), JSON.stringify(thisProcess()));
    const repo = join(folder, 'repo');
    const home = join(folder, 'home');
    mkdirSync(repo);
    mkdirSync(home);
    linkPackages(join(folder, 'node_modules'), packages);
    const { run: runProgram } = starter;
    const git = createGit({ cwd: repo, env: { ...fixedEnvironment, PATH: path, HOME: home }, runProgram });
    const base = await furnish(git, options);
    await seedClaims(repo, options.manifest.claims);
    return { folder, repo, home, git, runProgram, base, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** The surroundings of a command that is played there. */
export const onStage =
  ({ runProgram }: Stage) =>
  (environment: Environment): Environment => ({ ...environment, runProgram });

/** The store is made only if there is something to put in. */
async function seedClaims(repo: string, claims: CaseManifest['claims']): Promise<void> {
  if (claims.length === 0) return;
  excludeFromGit(repo);
  const store = await openStore(join(repo, '.reprise', 'state'));
  try {
    await putClaims(store, claims);
  } finally {
    await store.close();
  }
}

function linkPackages(target: string, { installed, reprise }: Packages): void {
  if (installed !== undefined && existsSync(join(installed, 'reprise'))) {
    symlinkSync(installed, target);
    return;
  }
  mkdirSync(target);
  symlinkSync(reprise, join(target, 'reprise'));
  const others = installed === undefined ? [] : readdirSync(installed);
  for (const name of others) symlinkSync(join(installed ?? '', name), join(target, name));
}

async function furnish(git: Git, { manifest, caseFolder, project, path }: StageOptions): Promise<string> {
  const { base, files, definitions } = manifest;
  const own = Object.fromEntries(Object.entries(files).filter(([name]) => isDefinition(name)));
  const chosen = definitions === 'project' ? { ...own, ...definitionFiles(project) } : own;
  if (base) {
    const { commit, branch, shallow } = base;
    const pack = readFileSync(join(caseFolder, base.pack));
    await restoreBase({ git, folder: git.cwd, commit, branch, shallow, pack });
    writeFiles(git.cwd, { ...files, ...chosen });
    return commit;
  }
  await initRepository(git, path);
  hideDefinitions(git.cwd);
  writeFiles(git.cwd, { ...files, ...chosen });
  await git.ok(['add', '--all']);
  await git.ok(['commit', '--quiet', '--allow-empty', '--message', 'Begin']);
  return readFileSync(join(git.cwd, '.git', 'refs', 'heads', 'main'), 'utf8').trim();
}

const isDefinition = (name: string): boolean => name === 'reprise.yaml' || name.startsWith('.reprise/');

/**
 * Workflows and agents are no part of what the case begins from: otherwise whoever changes a word of a prompt would
 * change every commit, and nothing would fit any more.
 */
function hideDefinitions(repo: string): void {
  mkdirSync(join(repo, '.git', 'info'), { recursive: true });
  writeFileSync(join(repo, '.git', 'info', 'exclude'), '/reprise.yaml\n/.reprise/\n');
}

function writeFiles(repo: string, files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) {
    const file = join(repo, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, content.startsWith('#!') ? { mode: 0o755 } : {});
  }
}
