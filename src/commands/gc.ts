import { applyGc, type GcDone, gatherGcFacts, type Removed } from '../git/gc/apply.ts';
import { type GcAction, planGc, type RunStanding } from '../git/gc/plan.ts';
import { openRepository } from '../git/repository.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { thisOwner } from '../project/identity.ts';
import { displayPath, findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { hasEnded, openStoredRuns, ownershipOf } from '../project/runs.ts';
import { count, jsonText } from '../terminal/text.ts';
import { shellWord } from '../terminal/words.ts';
import { safeLine } from '../view/safe-text.ts';

export interface GcCommandOptions extends ProjectOptions {
  /** Only say what would be done. */
  readonly dryRun?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** Removes workspaces and branches of runs that have ended. Nothing is lost: commits that are nowhere else stay on their branch. */
export async function gcCommand(
  { io }: { readonly io: CommandIo },
  options: GcCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const request = { repository, owner: thisOwner(), signal: io.interrupt };
  const plan = planGc(await gatherGcFacts(request), await runStandings(project, io));
  const done = options.dryRun
    ? { removed: plan.remove.map(planned), parked: plan.park, left: plan.leave }
    : await applyGc({ ...request, plan }).then(({ left, ...rest }) => ({
        ...rest,
        left: [...plan.leave, ...left],
      }));
  const report = { ...done, isDryRun: options.dryRun === true };
  if (options.json) writeLines(io.out, jsonText(describe(report)));
  else for (const line of linesOf(report, io)) writeLines(io.out, line);
  return exitCodes.ok;
}

interface Report extends GcDone {
  readonly isDryRun: boolean;
}

/** A run that is being worked on, waits or was interrupted may go on, and needs what it has. */
async function runStandings(project: Project, io: CommandIo): Promise<ReadonlyMap<string, RunStanding>> {
  const store = await openStoredRuns(project, 'readonly');
  if (!store) return new Map();
  try {
    const now = io.now();
    return new Map(
      (await store.list()).map(run => {
        const isOver = hasEnded(run) && ownershipOf(run, now).kind !== 'held';
        return [run.runId, isOver ? 'ended' : 'active'];
      }),
    );
  } finally {
    await store.close();
  }
}

function planned(action: GcAction): Removed {
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

const bytesOf = (removed: readonly Removed[]): number => removed.reduce((sum, { bytes }) => sum + bytes, 0);

const describe = ({ removed, parked, left, isDryRun }: Report): object => ({
  dry_run: isDryRun,
  removed,
  parked,
  left,
  freed_bytes: bytesOf(removed),
});

function linesOf({ removed, parked, left, isDryRun }: Report, io: CommandIo): readonly string[] {
  const shown = (kind: string, what: string) =>
    safeLine(kind === 'branch' ? `branch ${what}` : displayPath(io, what));
  const verb = isDryRun ? 'would remove' : 'removed';
  const end = `${isDryRun ? 'would free' : 'freed'} ${bytesText(bytesOf(removed))}${isDryRun ? '; do it: reprise gc' : ''}`;
  return [
    ...removed.map(
      ({ kind, what, bytes }) => `${verb} ${shown(kind, what)}${bytes > 0 ? `  ${bytesText(bytes)}` : ''}`,
    ),
    ...parked.map(
      ({ branch, commits }) =>
        `kept branch ${safeLine(branch)}: ${count(commits, 'commit')} nowhere else; see: git log ${shellWord(branch)}`,
    ),
    ...left.map(({ kind, what, why }) => `left ${shown(kind, what)}: ${safeLine(why)}`),
    removed.length === 0 ? 'nothing to remove' : end,
  ];
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}
