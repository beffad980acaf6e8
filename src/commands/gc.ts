import { readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyGc,
  type GcAction,
  type GcDone,
  gatherGcFacts,
  planGc,
  type RemovedItem,
  type RunActivity,
} from '../git/gc/index.ts';
import { openRepository } from '../git/index.ts';
import { removeLeftovers } from '../process/index.ts';
import {
  type CommandIo,
  displayPath,
  type ExitCode,
  exitCodes,
  expiredStates,
  findProject,
  hasEnded,
  openStoredRuns,
  ownershipOf,
  type Project,
  type ProjectOptions,
  readConfig,
  thisOwner,
  workspacesOf,
  writeLines,
} from '../project/index.ts';
import { stagingFolder } from '../project/journal/index.ts';
import { count, jsonText, shellWord } from '../terminal/index.ts';
import { safeLine } from '../view/index.ts';

export interface GcCommandOptions extends ProjectOptions {
  /** Whether to only print what would be removed. */
  readonly dryRun?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/**
 * Removes workspaces and branches of runs that have ended, of all projects, and imported state after 30 days. A branch with
 * commits that exist nowhere else is kept.
 */
export async function gcCommand(
  { io }: { readonly io: CommandIo },
  options: GcCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const request = { repository, owner: thisOwner(), signal: io.interrupt };
  const runs = await runActivities(project);
  const plan = planGc(await gatherGcFacts(request), runs);
  const done = options.dryRun
    ? { removed: plan.remove.map(planned), parked: plan.park, left: plan.leave }
    : await applyGc({ ...request, plan }).then(({ left, ...rest }) => ({
        ...rest,
        left: [...plan.leave, ...left],
      }));
  const expired = await expiredStates(project, io.now());
  if (!options.dryRun) {
    for (const folder of expired) rmSync(folder, { recursive: true, force: true });
    await removeUnused({ project, io }, runs);
  }
  const states = expired.map(what => ({ kind: 'state', what, bytes: 0 }) as const);
  const report = { ...done, removed: [...done.removed, ...states], isDryRun: options.dryRun === true };
  if (options.json) writeLines(io.out, jsonText(describe(report)));
  else for (const line of linesOf(report, io)) writeLines(io.out, line);
  return exitCodes.ok;
}

/** Removes the empty folders that ended runs left, and the temporary folders of processes that have ended. */
async function removeUnused(
  { project, io }: { readonly project: Project; readonly io: CommandIo },
  runs: ReadonlyMap<string, RunActivity>,
): Promise<void> {
  removeLeftovers(stagingFolder(project.stateDir));
  removeLeftovers();
  const folder = workspacesOf(project, await readConfig(project, io));
  const workflows = foldersIn(folder).map(name => join(folder, name));
  const places = [...workflows, join(project.stateDir, 'scratch')];
  for (const place of places) {
    for (const run of foldersIn(place)) if (runs.get(run) === 'ended') removeEmpty(join(place, run));
    removeIfEmpty(place);
  }
  removeIfEmpty(folder);
}

function removeEmpty(folder: string): void {
  for (const name of foldersIn(folder)) removeEmpty(join(folder, name));
  removeIfEmpty(folder);
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // The folder is in use, or does not exist.
  }
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

interface GcReport extends GcDone {
  readonly isDryRun: boolean;
}

/** Status of every run. A run that is running, waiting or interrupted may continue, so it counts as active. */
async function runActivities(project: Project): Promise<ReadonlyMap<string, RunActivity>> {
  const store = await openStoredRuns(project, 'readonly', { all: true });
  if (!store) return new Map();
  try {
    return new Map(
      (await store.list()).map(run => {
        const isOver = hasEnded(run) && ownershipOf(run, project).kind !== 'held';
        return [run.runId, isOver ? 'ended' : 'active'];
      }),
    );
  } finally {
    await store.close();
  }
}

function planned(action: GcAction): RemovedItem {
  switch (action.kind) {
    case 'remove-workspace':
      return { kind: 'workspace', what: action.path, bytes: action.bytes };
    case 'remove-scratch':
      return { kind: 'scratch', what: action.path, bytes: action.bytes };
    case 'remove-unborn':
      return { kind: 'unborn', what: action.path, bytes: 0 };
    case 'delete-branch':
      return { kind: 'branch', what: action.branch, bytes: 0 };
  }
}

const bytesOf = (removed: readonly RemovedItem[]): number =>
  removed.reduce((sum, { bytes }) => sum + bytes, 0);

const describe = ({ removed, parked, left, isDryRun }: GcReport): object => ({
  dry_run: isDryRun,
  removed,
  parked,
  left,
  freed_bytes: bytesOf(removed),
});

function linesOf({ removed, parked, left, isDryRun }: GcReport, io: CommandIo): readonly string[] {
  const shown = (kind: string, what: string) =>
    safeLine(kind === 'branch' ? `branch ${what}` : displayPath(io, what));
  const verb = isDryRun ? 'would remove' : 'removed';
  const end = `${isDryRun ? 'would free' : 'freed'} ${bytesText(bytesOf(removed))}${isDryRun ? '; to remove them: reprise gc' : ''}`;
  return [
    ...removed.map(
      ({ kind, what, bytes }) => `${verb} ${shown(kind, what)}${bytes > 0 ? `  ${bytesText(bytes)}` : ''}`,
    ),
    ...parked.map(
      ({ branch, commits }) =>
        `kept branch ${safeLine(branch)}: ${count(commits, 'commit')} not on any other branch; see git log ${shellWord(branch)}`,
    ),
    ...left.map(({ kind, what, why }) => `kept ${shown(kind, what)}: ${safeLine(why)}`),
    removed.length === 0 ? 'nothing to remove' : end,
  ];
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}
