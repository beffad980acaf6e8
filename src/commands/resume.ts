import { RepriseError } from '../core/errors.ts';
import { type Definition, loadRecordedDefinition } from '../project/definitions.ts';
import { type ExitCode, exitCodeOfResult } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { resumeLine } from '../project/journal/command-line.ts';
import { openEngine } from '../project/open-engine.ts';
import { findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { selectRun, withStoredRuns } from '../project/runs.ts';
import type { RunSummary } from '../store/port.ts';
import { jsonText } from '../terminal/text.ts';
import { safeText } from '../view/safe-text.ts';
import { workerSource } from '../worker/contract.ts';
import { type DriveOptions, drive, resultLine, writeOutput } from './drive.ts';

interface ResumeCommandOptions extends DriveOptions, ProjectOptions {
  /** The id or its beginning; the newest run by default. */
  readonly run?: string | undefined;
  /** Start a new run that keeps what does not come after this step. */
  readonly from?: string | undefined;
  readonly rerunChanged?: boolean | undefined;
}

/** Goes on with a run where it stopped, or forks a new one from a step of it. */
export async function resumeCommand(
  { io }: { readonly io: CommandIo },
  options: ResumeCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const { run, definition } = await findRun(options.run, { project, io });
  const { runId } = run;
  if (definition.source === workerSource)
    throw new RepriseError('USAGE', `run ${runId} belongs to a worker`, {
      hint: 'what a worker left behind is taken over by the next one: reprise worker',
    });
  const { model: workflow } = definition;
  const { from, rerunChanged } = options;
  let forked: string | undefined;
  const exitCode = await drive({
    io,
    project,
    definition,
    options,
    command: resumeLine(runId, { from, rerunChanged }),
    ...(from === undefined ? { runId } : {}),
    begin: async (engine, runOptions) => {
      if (from === undefined) return engine.resume({ ...runOptions, workflow, runId, rerunChanged });
      const result = await engine.fork({ ...runOptions, workflow, runId, from });
      forked = result.runId;
      return result;
    },
  });
  if (run.status === 'completed' && from === undefined && !rerunChanged && !options.quiet)
    writeLines(io.err, `run ${runId} was completed already; nothing was done again`);
  if (forked !== undefined) writeLines(io.err, `run ${forked} was forked from run ${runId} at step ${from}`);
  return exitCode;
}

interface FoundRun {
  readonly run: RunSummary;
  readonly definition: Definition;
}

function findRun(
  reference: string | undefined,
  place: { readonly project: Project; readonly io: CommandIo },
): Promise<FoundRun> {
  return withStoredRuns({ project: place.project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, reference);
    return { run, definition: await loadRecordedDefinition(await store.read(run.runId), place) };
  });
}

interface ReplayCommandOptions extends ProjectOptions {
  /** The id or its beginning; the newest run by default. */
  readonly run?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Goes through a history and gives what it gave. Runs nothing, writes nothing. Throws HISTORY_DIVERGED. */
export async function replayCommand(
  { io }: { readonly io: CommandIo },
  options: ReplayCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, options.run);
    const { model: workflow } = await loadRecordedDefinition(await store.read(runId), { project, io });
    const { engine } = await openEngine({ ...project, env: io.env, store });
    const { result, history, ended } = await engine.replay({ workflow, runId });
    if (options.json) {
      for (const event of history) writeLines(io.out, jsonText(event));
      writeLines(io.out, resultLine(result));
    } else if (result.status === 'completed') writeOutput(io, result.output);
    const { length } = history;
    writeLines(
      io.err,
      `replayed ${length} event${length === 1 ? '' : 's'}; nothing was run, nothing was written`,
    );
    if (!ended)
      writeLines(
        io.err,
        `run ${runId} has not come to its end; see where it stands: reprise show ${runId}${project.commandSuffix}`,
      );
    else if (result.status !== 'completed')
      writeLines(io.err, `${endedBadly(result)}${project.commandSuffix}`);
    return exitCodeOfResult(result);
  });
}

function endedBadly(result: Parameters<typeof exitCodeOfResult>[0]): string {
  const why = result.status === 'failed' ? `: ${safeText(result.error.message)}` : '';
  return `the run ended ${result.status}${why}; see how it went: reprise show ${result.runId}`;
}
