import { RepriseError } from '../core/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodeOfResult,
  findProject,
  type LoadedDefinition,
  loadRecordedDefinition,
  openEngine,
  type Project,
  type ProjectOptions,
  selectRun,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import { resumeLine } from '../project/journal/index.ts';
import type { RunSummary } from '../store/index.ts';
import { jsonText } from '../terminal/index.ts';
import { safeText } from '../view/index.ts';
import { workerSource } from '../worker/index.ts';
import { type ExecuteRunOptions, executeRun, resultLine, writeOutput } from './execute-run.ts';

interface ResumeCommandOptions extends ExecuteRunOptions, ProjectOptions {
  /** Run id or a prefix of it. Defaults to the newest run. */
  readonly run?: string | undefined;
  /** Step to fork from: a new run reruns it and all steps after it. */
  readonly from?: string | undefined;
  readonly rerunChanged?: boolean | undefined;
}

/** Resumes a run from where it stopped, or forks a new one from one of its steps. Throws USAGE. */
export async function resumeCommand(
  { io }: { readonly io: CommandIo },
  options: ResumeCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const { run, definition } = await findRun(options.run, { project, io });
  const { runId } = run;
  if (definition.source === workerSource)
    throw new RepriseError('USAGE', `run ${runId} belongs to a worker`, {
      hint: 'the next worker takes it over: reprise worker',
    });
  const { model: workflow } = definition;
  const { from, rerunChanged } = options;
  let forked: string | undefined;
  const exitCode = await executeRun({
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
    writeLines(io.err, `run ${runId} has already completed; nothing was rerun`);
  if (forked !== undefined) writeLines(io.err, `run ${forked} was forked from run ${runId} at step ${from}`);
  return exitCode;
}

interface FoundRun {
  readonly run: RunSummary;
  readonly definition: LoadedDefinition;
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
  /** Run id or a prefix of it. Defaults to the newest run. */
  readonly run?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Replays a history and prints its output. Runs nothing and writes nothing. Throws HISTORY_DIVERGED. */
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
    writeLines(io.err, `replayed ${length} event${length === 1 ? '' : 's'}; nothing was run or written`);
    if (!ended)
      writeLines(
        io.err,
        `run ${runId} has not ended yet; see its status: reprise show ${runId}${project.commandSuffix}`,
      );
    else if (result.status !== 'completed')
      writeLines(io.err, `${failureText(result)}${project.commandSuffix}`);
    return exitCodeOfResult(result);
  });
}

function failureText(result: Parameters<typeof exitCodeOfResult>[0]): string {
  const why = result.status === 'failed' ? `: ${safeText(result.error.message)}` : '';
  return `the run ended as ${result.status}${why}; see what happened: reprise show ${result.runId}`;
}
