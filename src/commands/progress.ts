import type { HistoryEvent } from '../core/events.ts';
import type { Observation } from '../engine/environment.ts';
import type { RunResult } from '../engine/run/result.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import type { Project } from '../project/project.ts';
import type { Reporter } from '../terminal/index.ts';
import { jsonText } from '../terminal/text.ts';
import type { WorkflowModel } from '../workflow/model.ts';

export interface DisplayOptions {
  /** NDJSON on standard output: the events as they are committed, then the result. */
  readonly json?: boolean | undefined;
  /** Nothing while it runs. */
  readonly quiet?: boolean | undefined;
  /** With what the steps print. */
  readonly verbose?: boolean | undefined;
}

/** What is shown while a run goes on: the view that fits the flags and the terminal. */
export async function openProgress(
  {
    io,
    project,
    display,
  }: { readonly io: CommandIo; readonly project: Project; readonly display: DisplayOptions },
  shown: { readonly workflow: WorkflowModel; readonly history: readonly HistoryEvent[] },
): Promise<Reporter> {
  if (display.json) return jsonReporter(io);
  if (display.quiet) return silentReporter(io);
  const { createLiveReporter, createPlainReporter } = await import('../terminal/index.ts');
  const { color, unicode } = lookOf(io, 'err');
  const now = () => io.now();
  if (io.terminal && !display.verbose)
    return createLiveReporter({ stdout: io.terminal, ...shown, color, unicode, now });
  const { commandSuffix } = project;
  const { verbose } = display;
  return createPlainReporter({ write: text => io.err(text), ...shown, color, now, verbose, commandSuffix });
}

function jsonReporter(io: CommandIo): Reporter {
  const { observe: notice } = silentReporter(io);
  return {
    observe: observation => {
      if (observation.kind === 'events')
        for (const event of observation.events) writeLines(io.out, jsonText(event));
      else notice(observation);
    },
    close: async () => {},
  };
}

/** What somebody has to know even so. */
const silentReporter = (io: CommandIo): Reporter => ({
  observe: (observation: Observation) => {
    if (observation.kind === 'notice') writeLines(io.err, observation.message);
  },
  close: async () => {},
});

/** The last line of NDJSON. */
export const resultLine = (result: RunResult): string => jsonText({ type: 'result', ...result });
