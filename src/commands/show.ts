import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { toTimestamp } from '../core/index.ts';
import { canonicalOrder, digestsOf } from '../engine/history/index.ts';
import type { Waiting } from '../engine/index.ts';
import { type HistoryFolders, resolveRecorded } from '../engine/index.ts';
import { stalledText } from '../git/index.ts';
import {
  type CommandIo,
  displayPath,
  type ExitCode,
  exitCodes,
  findProject,
  hasEnded,
  type Ownership,
  ownershipOf,
  type Project,
  type ProjectOptions,
  selectRun,
  shownStatus,
  styleOf,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import type { RunSummary } from '../store/index.ts';
import { jsonText } from '../terminal/index.ts';
import { knownCost, type RunStatusReport, runStatusOf, type StepProgress, safeLine } from '../view/index.ts';

/** JSON fields for the work of a step or copy; empty without an agent or a workspace. */
function describeWork(step: StepProgress, folders: HistoryFolders): object {
  const { work, spent, fanOut, item } = step;
  const { workspace, session, selection, landings, delivered, denials, checked, artifacts } = work;
  return {
    ...(fanOut ? { workers: fanOut.total } : {}),
    ...(item === undefined ? {} : { matrix: item }),
    ...(selection ? { selected: selection.winner } : {}),
    ...(workspace
      ? {
          workspace: workspace.path,
          branch: workspace.branch,
          base: workspace.base,
          commit: workspace.saved?.commit ?? null,
        }
      : {}),
    ...(session
      ? { session: { agent: session.agent, kind: session.kind, id: session.sessionId ?? null } }
      : {}),
    ...(spent.sessions > 0 ? { cost: knownCost(spent), tokens: spent.tokens } : {}),
    ...(landings.length > 0 ? { landings } : {}),
    ...(delivered ? { delivered } : {}),
    ...(checked.length > 0 ? { checks: checked } : {}),
    ...(denials.length > 0 ? { denials } : {}),
    ...(artifacts.length > 0
      ? { artifacts: artifacts.map(({ name, path }) => ({ name, path: resolveRecorded(folders, path) })) }
      : {}),
  };
}

interface ShowCommandOptions extends ProjectOptions {
  /** Run id or a prefix of it. Defaults to the newest run. */
  readonly run?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Shows the status of a run, its owner, its waits and the commands to type next. */
export async function showCommand(
  { io }: { readonly io: CommandIo },
  options: ShowCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, options.run);
    const history = await store.read(run.runId);
    const report = runStatusOf(run.runId, history);
    const ownership = ownershipOf(run, project);
    if (options.json) {
      const next = nextCommands({ run, report, ownership }).map(
        command => `${command}${project.commandSuffix}`,
      );
      writeLines(io.out, jsonText({ ...describe({ run, report, ownership }, project), next }));
      return exitCodes.ok;
    }
    const { formatSummary } = await import('../terminal/index.ts');
    writeLines(io.out, heading({ run, report, ownership }, project));
    const running = ownership.kind === 'held';
    writeLines(
      io.out,
      formatSummary({
        result: undefined,
        history,
        running,
        stateDir: displayPath(io, project.stateDir),
        root: displayPath(io, project.state.historyRoot),
        isThere: path => existsSync(join(project.state.historyRoot, path)),
        commandSuffix: project.commandSuffix,
        ...styleOf(io, 'out'),
      }),
    );
    if (report.result.status === 'completed')
      writeLines(io.out, `\noutput: ${jsonText(report.result.output, 2)}`);
    return exitCodes.ok;
  });
}

interface ShownRun {
  readonly run: RunSummary;
  readonly report: RunStatusReport;
  readonly ownership: Ownership;
}

function heading({ run, report, ownership }: ShownRun, project: Project): string {
  const source = report.source ? ` (${report.source})` : '';
  const lines = [`${safeLine(`${run.workflow}${source}`)}, run ${run.runId}: ${shownStatus(run, project)}`];
  const { forkedFrom } = report.view;
  if (forkedFrom) lines.push(`forked from run ${forkedFrom.run} at step ${forkedFrom.step}`);
  if (!hasEnded(run)) lines.push(ownerLine(ownership));
  return lines.join('\n');
}

function ownerLine(ownership: Ownership): string {
  switch (ownership.kind) {
    case 'free':
      return 'no process is running it';
    case 'held':
      return ownership.stalledMs === undefined
        ? `process ${ownership.owner.pid} on ${ownership.owner.host} is running it`
        : `its ${stalledText(ownership.owner, ownership.stalledMs)}`;
    case 'dead':
      return `its process ${ownership.owner.pid} on ${ownership.owner.host} has died`;
  }
}

/** Commands that continue the run, or show what happened. */
function nextCommands({ run: { runId, status }, report, ownership }: ShownRun): readonly string[] {
  if (hasEnded({ status })) {
    return [status === 'completed' ? `reprise history ${runId}` : `reprise resume ${runId}`];
  }
  const answers = report.waiting.flatMap(waiting => answerCommand(runId, waiting));
  if (ownership.kind === 'held') return answers.length > 0 ? answers : [`reprise cancel ${runId}`];
  return answers.length > 0 ? answers : [`reprise resume ${runId}`];
}

function answerCommand(runId: string, waiting: Waiting): string[] {
  switch (waiting.on) {
    case 'approval':
      return [`reprise approve ${runId} ${waiting.step}`];
    case 'signal':
      return [`reprise signal ${runId} ${waiting.signal}`];
    case 'timer':
      return [];
  }
}

function describe({ run, report, ownership }: ShownRun, project: Project) {
  const { status: _status, runId: _runId, ...end } = report.result;
  return {
    id: run.runId,
    workflow: run.workflow,
    status: shownStatus(run, project),
    source: report.source ?? null,
    forked_from: report.view.forkedFrom ?? null,
    started_at: run.startedAt,
    ended_at: run.endedAt,
    owner:
      ownership.kind === 'free'
        ? null
        : {
            state: ownership.kind,
            pid: ownership.owner.pid,
            host: ownership.owner.host,
            lease_until: ownership.owner.expiresAt,
          },
    steps: report.view.steps.map(step => describeStep(step, project)),
    cost: knownCost(report.view.spent),
    waiting: report.waiting,
    ...('waiting' in end ? {} : end),
  };
}

const describeStep = (step: StepProgress, folders: HistoryFolders) => {
  const { path, status, attempt, startedAt, endedAt, error } = step;
  return {
    path,
    status,
    attempts: attempt,
    started_at: startedAt === undefined ? null : toTimestamp(startedAt),
    ended_at: endedAt === undefined ? null : toTimestamp(endedAt),
    ...describeWork(step, folders),
    // A completed step may still hold the error of an earlier attempt.
    ...(error === undefined || status === 'completed' ? {} : { error }),
  };
};

interface HistoryCommandOptions extends ProjectOptions {
  /** Run id or a prefix of it. Defaults to the newest run. */
  readonly run?: string | undefined;
  /** Whether to print events in recorded order instead of the canonical one. */
  readonly raw?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly digest?: boolean | undefined;
}

/** Prints the events of a run, or their digests. */
export async function historyCommand(
  { io }: { readonly io: CommandIo },
  options: HistoryCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, options.run);
    const recorded = await store.read(runId);
    if (options.digest) {
      const { outcome, history } = digestsOf(recorded);
      writeLines(
        io.out,
        options.json ? jsonText({ outcome, history }) : `outcome ${outcome}\nhistory ${history}`,
      );
      return exitCodes.ok;
    }
    const events = options.raw ? recorded : canonicalOrder(recorded);
    if (options.json) for (const event of events) writeLines(io.out, jsonText(event));
    else {
      const { formatHistory } = await import('../terminal/index.ts');
      writeLines(io.out, formatHistory(events, styleOf(io, 'out')));
    }
    return exitCodes.ok;
  });
}
