import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileLimits, readRecordedFile } from '../../effects/index.ts';
import type { Environment } from '../../engine/index.ts';
import { restoreBase } from '../../git/delta/index.ts';
import { branchTip, createGit, type Git } from '../../git/index.ts';
import { worktreeEntries } from '../../git/workspace/index.ts';
import { type RunProgram, ShellPool, temporaryFolder } from '../../process/index.ts';
import { excludeFromGit, openStore } from '../../project/index.ts';
import { definitionFiles } from '../../project/journal/index.ts';
import type { EventStore } from '../../store/index.ts';
import type { Packages, TestContext } from '../context.ts';
import type { CaseClaim, CaseManifest } from '../manifest/manifest.ts';
import type { SnapshotResult } from '../snapshot/snapshot.ts';

/** A file below `.git`, or a folder, which has no content. */
interface RepositoryPart {
  readonly path: string;
  readonly content: Buffer | undefined;
}

/** Fresh repositories by `PATH`, which determines the version of git. */
const templates = new Map<string | undefined, readonly RepositoryPart[]>();

/**
 * Creates an empty repository on `main`. `git init` always gives the same files, so only the first stage of a process
 * runs it and the others copy the result. Throws GIT_FAILED.
 */
async function initRepository(git: Git, searchPath: string | undefined): Promise<void> {
  const folder = join(git.cwd, '.git');
  const known = templates.get(searchPath);
  if (known) {
    copyTo(folder, known);
    return;
  }
  await git.ok(['init', '--quiet', '--initial-branch=main', '--template=']);
  templates.set(searchPath, partsOf(folder));
}

const partsOf = (folder: string): readonly RepositoryPart[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).map(entry => {
    const file = join(entry.parentPath, entry.name);
    return { path: file.slice(folder.length + 1), content: entry.isFile() ? readFileSync(file) : undefined };
  });

function copyTo(folder: string, parts: readonly RepositoryPart[]): void {
  mkdirSync(folder);
  for (const { path, content } of parts) {
    if (content === undefined) mkdirSync(join(folder, path), { recursive: true });
    else writeFileSync(join(folder, path), content);
  }
}

/** Time before the start of every case. */
const longAgo = '2026-01-01T00:00:00.000Z';

/** Stores claims of workers outside of the case. A held one has no run, like the claim of a person, so it is never released. */
export async function putClaims(
  { claims: store }: Pick<EventStore, 'claims'>,
  claims: readonly CaseClaim[],
): Promise<void> {
  for (const { task, state, version, by } of claims) {
    await store.take({ task, version, by, seen: 0, runId: null, at: longAgo });
    if (state !== 'held') await store.settle({ task, state, at: longAgo });
  }
}

/** A temporary repository in which a case is performed. */
export interface Stage {
  /** Temporary folder of the stage, deleted after the case. */
  readonly folder: string;
  readonly repo: string;
  readonly home: string;
  readonly git: Git;
  /** Starts git processes on the stage. */
  readonly runProgram: RunProgram;
  /** Id of the commit that the case starts from. */
  readonly base: string;
  remove(): void;
}

/** Fixed names and dates, so that the same work gives the same commits on every machine. */
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

interface StageOptions {
  readonly manifest: CaseManifest;
  readonly caseFolder: string;
  /** Folder of the project that the case belongs to. */
  readonly project: string;
  readonly packages: Packages;
  readonly path: string | undefined;
  /** Parent folder of the stage. Defaults to the folder for temporary files. */
  readonly within?: string | undefined;
}

/** Creates the stage of a case in the project that it belongs to. Throws GIT_FAILED. */
export const stageOf = (
  { folder }: { readonly folder: string },
  manifest: CaseManifest,
  { cwd, packages, env }: TestContext,
  { within }: Pick<StageOptions, 'within'> = {},
): Promise<Stage> =>
  setStage({ manifest, caseFolder: folder, project: cwd, packages, path: env['PATH'], within });

/** Creates the repository that a case starts from. Throws GIT_FAILED. */
export async function setStage(options: StageOptions): Promise<Stage> {
  const { packages, path, within = tmpdir() } = options;
  const folder = realpathSync(temporaryFolder('case', within));
  const starter = new ShellPool(folder);
  const remove = () => {
    starter.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    const repo = join(folder, 'repo');
    const home = join(folder, 'home');
    mkdirSync(repo);
    mkdirSync(home);
    linkPackages(join(folder, 'node_modules'), packages);
    const { run: runProgram } = starter;
    const git = createGit({ cwd: repo, env: { ...fixedEnvironment, PATH: path, HOME: home }, runProgram });
    const base = await populate(git, options);
    await seedClaims(repo, options);
    return { folder, repo, home, git, runProgram, base, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Makes the commands of a case start their programs through the stage, in its repository. */
export const onStage =
  ({ repo, runProgram }: Stage) =>
  (environment: Environment): Environment => {
    const git = createGit({ cwd: repo, inheritEnv: environment.env, runProgram });
    const opened = { root: repo, commonDir: join(repo, '.git'), git };
    const repository = Object.assign(async () => opened, { known: () => opened });
    return { ...environment, runProgram, ...(environment.projectRoot === repo ? { repository } : {}) };
  };

/** Returns the state folder of a repository that is not a linked worktree. */
export const stateOf = (repo: string): string => join(repo, '.git', 'reprise');

/** Creates the store only if the case has claims. */
async function seedClaims(repo: string, { manifest: { claims }, path }: StageOptions): Promise<void> {
  if (claims.length === 0) return;
  excludeFromGit(repo, { PATH: path });
  const store = await openStore(stateOf(repo));
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

async function populate(git: Git, { manifest, caseFolder, project, path }: StageOptions): Promise<string> {
  const { base, files, definitions } = manifest;
  const own = Object.fromEntries(Object.entries(files).filter(([name]) => isDefinition(name)));
  const chosen = definitions === 'project' ? { ...own, ...definitionFiles(project) } : own;
  if (base) {
    const { commit, branch, shallow } = base;
    const pack = readRecordedFile({ file: join(caseFolder, base.pack), maxBytes: fileLimits.blob });
    await restoreBase({ git, folder: git.cwd, commit, branch, shallow, pack });
    writeFiles(git.cwd, { ...files, ...chosen });
    excludeFromGit(git.cwd, { PATH: path });
    return commit;
  }
  await initRepository(git, path);
  hideDefinitions(git.cwd);
  writeFiles(git.cwd, { ...files, ...chosen });
  await git.ok(['add', '--all']);
  await git.ok(['commit', '--quiet', '--allow-empty', '--message', 'Begin']);
  return git.line(['rev-parse', 'HEAD']);
}

const isDefinition = (name: string): boolean => name === 'reprise.yaml' || name.startsWith('.reprise/');

/** Keeps workflows and agents out of the first commit. Otherwise editing a prompt would change every SHA of the recording. */
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

interface StageHistory {
  /** Commits by id. */
  readonly commits: ReadonlyMap<string, StageCommit>;
  /** Tips by branch. */
  readonly branches: ReadonlyMap<string, string>;
}

interface StageCommit {
  readonly tree: string;
  readonly parents: readonly string[];
  readonly subject: string;
}

/** Reads all reachable commits and all branches with a single git process. */
export async function stageHistory({ git }: Stage): Promise<StageHistory> {
  const args = ['log', '--all', '--decorate=full', '--decorate-refs=refs/heads', '--format=%H %T %P%n%D%n%s'];
  const lines = (await git.ok(args)).split('\n');
  const commits = new Map<string, StageCommit>();
  const branches = new Map<string, string>();
  for (let at = 0; at + 2 < lines.length; at += 3) {
    const [ids = '', refs = '', subject = ''] = lines.slice(at, at + 3);
    const [id = '', tree = '', ...parents] = ids.trimEnd().split(' ');
    commits.set(id, { tree, parents, subject });
    const names = refs === '' ? [] : refs.split(', ');
    for (const name of names) branches.set(name.replace(/^refs\/heads\//, ''), id);
  }
  return { commits, branches };
}

/** Returns the state of the repository after the last command. */
export async function stageResult(
  stage: Stage,
  { main, history }: { readonly main: string; readonly history: StageHistory },
): Promise<SnapshotResult> {
  return {
    main: (linearLog(history, main) ?? (await readLog(stage, main))).filter(subject => subject !== ''),
    worktrees: (await worktreeEntries(stage)).map(({ path }) => path),
    branches: [...history.branches.keys()].filter(branch => branch !== main),
  };
}

/** Returns the subjects from the first commit of a branch to its tip; `undefined` if there is a merge. */
function linearLog({ commits, branches }: StageHistory, branch: string): readonly string[] | undefined {
  const subjects: string[] = [];
  for (let id = branches.get(branch); id !== undefined; ) {
    const commit = commits.get(id);
    if (commit === undefined || commit.parents.length > 1) return undefined;
    subjects.unshift(commit.subject);
    id = commit.parents[0];
  }
  return subjects;
}

async function readLog({ git }: Stage, branch: string): Promise<readonly string[]> {
  const log = await git.ok(['log', '--reverse', '--format=%s', `refs/heads/${branch}`, '--']);
  return log.split('\n');
}

/** Returns the tip of the main branch; `null` if the branch does not exist. */
export async function mainOf(stage: Stage, main: string): Promise<{ ref: string; commit: string } | null> {
  const commit = await branchTip(stage, main);
  return commit === undefined ? null : { ref: `refs/heads/${main}`, commit };
}
