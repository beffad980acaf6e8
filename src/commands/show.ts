import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { toTimestamp } from '../core/time.ts';
import { canonicalOrder, digestsOf } from '../engine/history/digest.ts';
import type { Waiting } from '../engine/run/result.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { displayPath, findProject, type ProjectOptions } from '../project/project.ts';
import {
  hasEnded,
  type Ownership,
  ownershipOf,
  selectRun,
  standingStatus,
  withStoredRuns,
} from '../project/runs.ts';
import type { RunSummary } from '../store/port.ts';
import { jsonText } from '../terminal/text.ts';
import { knownCost } from '../view/cost.ts';
import { type RunStanding, standingOf } from '../view/run-status.ts';
import { safeLine } from '../view/safe-text.ts';
import type { StepProgress } from '../view/step-progress.ts';

/** What there is to say of the work of a step or worker, for programs; nothing where no agent and no workspace was. */
function describeWork(step: StepProgress): object {
  const { work, spent, fanOut, item } = step;
  const { workspace, session, selection, landings, denials, artifacts } = work;
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
    ...(denials.length > 0 ? { denials } : {}),
    ...(artifacts.length > 0 ? { artifacts } : {}),
  };
}

interface ShowCommandOptions extends ProjectOptions {
  /** The id or its beginning; the newest run by default. */
  readonly run?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Shows where a run stands, who has it, what it waits for and what to type next. */
export async function showCommand(
  { io }: { readonly io: CommandIo },
  options: ShowCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, options.run);
    const history = await store.read(run.runId);
    const standing = standingOf(run.runId, history);
    const ownership = ownershipOf(run, io.now());
    if (options.json) {
      const next = nextCommands({ run, standing, ownership }).map(
        command => `${command}${project.commandSuffix}`,
      );
      writeLines(io.out, jsonText({ ...describe({ run, standing, ownership }, io.now()), next }));
      return exitCodes.ok;
    }
    const { formatSummary } = await import('../terminal/index.ts');
    writeLines(io.out, heading({ run, standing, ownership }, io.now()));
    const running = ownership.kind === 'held';
    writeLines(
      io.out,
      formatSummary({
        result: undefined,
        history,
        running,
        stateDir: displayPath(io, project.stateDir),
        root: displayPath(io, project.root),
        isThere: path => existsSync(join(project.root, path)),
        commandSuffix: project.commandSuffix,
        ...lookOf(io, 'out'),
      }),
    );
    if (standing.result.status === 'completed')
      writeLines(io.out, `\noutput: ${jsonText(standing.result.output, 2)}`);
    return exitCodes.ok;
  });
}

interface Shown {
  readonly run: RunSummary;
  readonly standing: RunStanding;
  readonly ownership: Ownership;
}

function heading({ run, standing, ownership }: Shown, now: number): string {
  const source = standing.source ? ` (${standing.source})` : '';
  const lines = [`${safeLine(`${run.workflow}${source}`)}, run ${run.runId}: ${standingStatus(run, now)}`];
  const { forkedFrom } = standing.view;
  if (forkedFrom) lines.push(`forked from run ${forkedFrom.run} at step ${forkedFrom.step}`);
  if (!hasEnded(run)) lines.push(ownerLine(ownership));
  return lines.join('\n');
}

function ownerLine(ownership: Ownership): string {
  switch (ownership.kind) {
    case 'free':
      return 'no process is running it';
    case 'held':
      return `process ${ownership.owner.pid} on ${ownership.owner.host} is running it`;
    case 'dead':
      return `its process ${ownership.owner.pid} on ${ownership.owner.host} is gone`;
    case 'expired':
      return `its process ${ownership.owner.pid} on ${ownership.owner.host} gave no sign of life since its lease ended at ${ownership.owner.expiresAt}`;
  }
}

/** What brings the run forward, or shows how it went. */
function nextCommands({ run: { runId, status }, standing, ownership }: Shown): readonly string[] {
  if (hasEnded({ status })) {
    return [status === 'completed' ? `reprise history ${runId}` : `reprise resume ${runId}`];
  }
  const answers = standing.waiting.flatMap(waiting => answerCommand(runId, waiting));
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

function describe({ run, standing, ownership }: Shown, now: number) {
  const { status: _status, runId: _runId, ...end } = standing.result;
  return {
    id: run.runId,
    workflow: run.workflow,
    status: standingStatus(run, now),
    source: standing.source ?? null,
    forked_from: standing.view.forkedFrom ?? null,
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
    steps: standing.view.steps.map(describeStep),
    cost: knownCost(standing.view.spent),
    waiting: standing.waiting,
    ...('waiting' in end ? {} : end),
  };
}

const describeStep = (step: StepProgress) => {
  const { path, status, attempt, startedAt, endedAt, error } = step;
  return {
    path,
    status,
    attempts: attempt,
    started_at: startedAt === undefined ? null : toTimestamp(startedAt),
    ended_at: endedAt === undefined ? null : toTimestamp(endedAt),
    ...describeWork(step),
    // What an earlier attempt failed with is no error of a step that completed.
    ...(error === undefined || status === 'completed' ? {} : { error }),
  };
};

interface HistoryCommandOptions extends ProjectOptions {
  /** The id or its beginning; the newest run by default. */
  readonly run?: string | undefined;
  /** As it happened, instead of in the canonical order. */
  readonly raw?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly digest?: boolean | undefined;
}

/** Prints the events of a run, or the digests over them. */
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
      writeLines(io.out, formatHistory(events, lookOf(io, 'out')));
    }
    return exitCodes.ok;
  });
}
