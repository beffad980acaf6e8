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
import { branchTip } from '../../git/refs.ts';
import { worktreeEntries } from '../../git/workspace/entries.ts';
import type { RunProgram } from '../../process/program.ts';
import { Starter } from '../../process/shell-pool.ts';
import { thisProcess } from '../../process/table.ts';
import { definitionFiles } from '../../project/journal/run-journal.ts';
import { openStore } from '../../project/open-engine.ts';
import { excludeFromGit } from '../../project/project.ts';
import type { EventStore } from '../../store/port.ts';
import type { Packages, TestContext } from '../context.ts';
import type { CaseClaim, CaseManifest } from '../manifest/manifest.ts';
import type { SnapshotResult } from '../snapshot/snapshot.ts';

/** A folder or a file below `.git`. */
interface Part {
  readonly path: string;
  readonly content: Buffer | undefined;
}

const made = new Map<string | undefined, readonly Part[]>();

/**
 * An empty repository on `main`. One git makes the same each time: only the first stage of a process asks for it, the
 * others get a copy. Throws GIT_FAILED.
 */
async function initRepository(git: Git, searchPath: string | undefined): Promise<void> {
  const folder = join(git.cwd, '.git');
  const known = made.get(searchPath);
  if (known) {
    copyTo(folder, known);
    return;
  }
  await git.ok(['init', '--quiet', '--initial-branch=main', '--template=']);
  made.set(searchPath, partsOf(folder));
}

const partsOf = (folder: string): readonly Part[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).map(entry => {
    const file = join(entry.parentPath, entry.name);
    return { path: file.slice(folder.length + 1), content: entry.isFile() ? readFileSync(file) : undefined };
  });

function copyTo(folder: string, parts: readonly Part[]): void {
  mkdirSync(folder);
  for (const { path, content } of parts) {
    if (content === undefined) mkdirSync(join(folder, path), { recursive: true });
    else writeFileSync(join(folder, path), content);
  }
}

/** Before anything that happens in a case. */
const longAgo = '2026-01-01T00:00:00.000Z';

/** Others are not in the case, so whatever they hold is held by a person, who never lets go. */
export async function putClaims(
  { claims: store }: Pick<EventStore, 'claims'>,
  claims: readonly CaseClaim[],
): Promise<void> {
  for (const { task, state, version, by } of claims) {
    await store.take({ task, version, by, seen: 0, runId: null, at: longAgo });
    if (state !== 'held') await store.settle({ task, state, at: longAgo });
  }
}

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

interface StageOptions {
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

/** The commits of a stage, by their ids, and the branches. */
interface StageHistory {
  readonly commits: ReadonlyMap<string, StageCommit>;
  /** With their tips. */
  readonly branches: ReadonlyMap<string, string>;
}

interface StageCommit {
  readonly parents: readonly string[];
  readonly subject: string;
}

/** Everything that refs lead to, with one process. */
export async function stageHistory({ git }: Stage): Promise<StageHistory> {
  const args = ['log', '--all', '--decorate=full', '--decorate-refs=refs/heads', '--format=%H %P%n%D%n%s'];
  const lines = (await git.ok(args)).split('\n');
  const commits = new Map<string, StageCommit>();
  const branches = new Map<string, string>();
  for (let at = 0; at + 2 < lines.length; at += 3) {
    const [ids = '', refs = '', subject = ''] = lines.slice(at, at + 3);
    const [id = '', ...parents] = ids.trimEnd().split(' ');
    commits.set(id, { parents, subject });
    const names = refs === '' ? [] : refs.split(', ');
    for (const name of names) branches.set(name.replace(/^refs\/heads\//, ''), id);
  }
  return { commits, branches };
}

/** What is there after the last step. */
export async function stageResult(
  stage: Stage,
  { main, history }: { readonly main: string; readonly history: StageHistory },
): Promise<SnapshotResult> {
  return {
    main: (lineOf(history, main) ?? (await askForLine(stage, main))).filter(subject => subject !== ''),
    worktrees: worktreeEntries(repositoryOf(stage)).map(({ path }) => path),
    branches: [...history.branches.keys()].filter(branch => branch !== main),
  };
}

/** Subjects from the first commit of a branch to its tip; `undefined` if there is a merge among them. */
function lineOf({ commits, branches }: StageHistory, branch: string): readonly string[] | undefined {
  const subjects: string[] = [];
  for (let id = branches.get(branch); id !== undefined; ) {
    const commit = commits.get(id);
    if (commit === undefined || commit.parents.length > 1) return undefined;
    subjects.unshift(commit.subject);
    id = commit.parents[0];
  }
  return subjects;
}

async function askForLine({ git }: Stage, branch: string): Promise<readonly string[]> {
  const log = await git.ok(['log', '--reverse', '--format=%s', `refs/heads/${branch}`, '--']);
  return log.split('\n');
}

const repositoryOf = ({ git, repo }: Stage) => ({ git, root: repo, commonDir: join(repo, '.git') });

/** Where the main branch is. */
export async function mainOf(stage: Stage, main: string): Promise<{ ref: string; commit: string } | null> {
  const commit = await branchTip(repositoryOf(stage), main);
  return commit === undefined ? null : { ref: `refs/heads/${main}`, commit };
}
