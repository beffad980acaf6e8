import { loadRecordedDefinition } from '../project/definitions.ts';
import { type ExitCode, exitCodeOfResult } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { openEngine } from '../project/open-engine.ts';
import { findProject, type ProjectOptions } from '../project/project.ts';
import { selectRun, withStoredRuns } from '../project/runs.ts';
import { jsonText } from '../terminal/text.ts';
import { safeText } from '../view/safe-text.ts';
import { writeOutput } from './drive.ts';
import { resultLine } from './progress.ts';

export interface ReplayCommandOptions extends ProjectOptions {
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
