import { canonicalOrder, digestsOf } from '../engine/history/digest.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { findProject, type ProjectOptions } from '../project/project.ts';
import { selectRun, withStoredRuns } from '../project/runs.ts';
import { jsonText } from '../terminal/text.ts';

export interface HistoryCommandOptions extends ProjectOptions {
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
