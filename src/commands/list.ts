import type { RunSummary } from '../store/port.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { type CommandIo, writeLines } from './io.ts';
import { lookOf } from './look.ts';
import { findProject, type ProjectOptions } from './project.ts';
import { openStoredRuns, type StandingStatus, standingStatus } from './stored-runs.ts';

export interface ListCommandOptions extends ProjectOptions {
  readonly json?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly workflow?: string | undefined;
}

/** Prints the runs of the project, newest first. */
export async function listCommand(
  { io }: { readonly io: CommandIo },
  options: ListCommandOptions,
): Promise<ExitCode> {
  const { json, limit, workflow } = options;
  const store = await openStoredRuns(findProject(io, options), 'readonly');
  const query = {
    ...(limit === undefined ? {} : { limit }),
    ...(workflow === undefined ? {} : { workflow }),
  };
  const runs = store ? await store.list(query).finally(() => store.close()) : [];
  const now = io.now();
  const rows = runs.map(run => ({ ...run, status: standingStatus(run, now) }));
  if (json) for (const row of rows) writeLines(io.out, JSON.stringify(toLine(row)));
  else if (rows.length === 0) writeLines(io.err, 'no runs yet; start a workflow: reprise run <workflow>');
  else {
    const { formatRunList } = await import('../report/index.ts');
    writeLines(io.out, formatRunList(rows, { ...lookOf(io, 'out'), now }));
  }
  return exitCodes.ok;
}

const toLine = (row: Omit<RunSummary, 'status'> & { readonly status: StandingStatus }) => ({
  id: row.runId,
  workflow: row.workflow,
  status: row.status,
  started_at: row.startedAt,
  ended_at: row.endedAt,
  cost: null,
});
