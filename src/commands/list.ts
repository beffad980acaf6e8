import { RepriseError } from '../core/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  openStoredRuns,
  type ProjectOptions,
  type ShownStatus,
  shownStatus,
  styleOf,
  writeLines,
} from '../project/index.ts';
import type { EventStore, RunSummary } from '../store/index.ts';
import { jsonText } from '../terminal/index.ts';
import { knownCost, safeLine, viewOf } from '../view/index.ts';

export interface ListCommandOptions extends ProjectOptions {
  readonly json?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly workflow?: string | undefined;
  /** Whether to list the runs of all projects of the repository. */
  readonly all?: boolean | undefined;
}

/** Prints the runs of the project, or of all projects of the repository, newest first. */
export async function listCommand(
  { io }: { readonly io: CommandIo },
  options: ListCommandOptions,
): Promise<ExitCode> {
  const { json, limit, workflow, all } = options;
  const project = findProject(io, options);
  const store = await openStoredRuns(project, 'readonly', { all });
  const query = {
    ...(limit === undefined ? {} : { limit }),
    ...(workflow === undefined ? {} : { workflow }),
  };
  let runs: readonly RunSummary[] = [];
  let others: readonly RunSummary[] = [];
  const costs = new Map<string, RunCost>();
  try {
    if (store) runs = await store.list(query);
    if (store && json) for (const run of runs) costs.set(run.runId, await costOf(store, run));
    if (store && runs.length === 0 && workflow !== undefined) others = await store.list();
  } finally {
    await store?.close();
  }
  const now = io.now();
  const rows = runs.map(run => ({ ...run, status: shownStatus(run, project) }));
  if (json) for (const row of rows) writeLines(io.out, jsonText(toLine(row, costs.get(row.runId))));
  else if (others.length > 0) {
    const names = [...new Set(others.map(run => run.workflow))];
    writeLines(
      io.err,
      safeLine(`no runs of workflow ${workflow}; the project has runs of ${names.join(', ')}`),
    );
  } else if (rows.length === 0)
    writeLines(io.err, `no runs yet; start a workflow: reprise run <workflow>${project.commandSuffix}`);
  else {
    const { formatRunList } = await import('../terminal/index.ts');
    writeLines(io.out, formatRunList(rows, { ...styleOf(io, 'out'), now }));
  }
  return exitCodes.ok;
}

interface RunCost {
  /** In US dollars; `null` if the cost of a session is unknown. */
  readonly cost: number | null;
  /** Reason why the history cannot be read. */
  readonly unreadable?: string;
}

async function costOf(store: EventStore, { runId }: RunSummary): Promise<RunCost> {
  try {
    return { cost: knownCost(viewOf(await store.read(runId)).spent) };
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'HISTORY_INVALID') throw thrown;
    return { cost: null, unreadable: thrown.message };
  }
}

const toLine = (
  row: Omit<RunSummary, 'status'> & { readonly status: ShownStatus },
  cost: RunCost = { cost: null },
) => ({
  id: row.runId,
  ...(row.project === undefined ? {} : { project: row.project }),
  workflow: row.workflow,
  status: row.status,
  started_at: row.startedAt,
  ended_at: row.endedAt,
  ...cost,
});
