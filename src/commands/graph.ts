import { RepriseError } from '../core/errors.ts';
import { loadDefinition } from '../project/definitions.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { selectRun, withStoredRuns } from '../project/runs.ts';
import { jsonText } from '../terminal/text.ts';
import { standingOf } from '../view/run-status.ts';
import type { StepModel, WorkflowModel } from '../workflow/model.ts';

export interface GraphCommandOptions extends ProjectOptions {
  readonly workflow: string;
  readonly mermaid?: boolean | undefined;
  readonly json?: boolean | undefined;
  /** Shows where the steps of this run stand. */
  readonly run?: string | undefined;
}

/** Draws the steps of a workflow and what they wait for. */
export async function graphCommand(
  { io }: { readonly io: CommandIo },
  options: GraphCommandOptions,
): Promise<ExitCode> {
  if (options.mermaid && options.json)
    throw new RepriseError('USAGE', '--mermaid and --json exclude each other');
  const project = findProject(io, options);
  const { model } = await loadDefinition(options.workflow, { project, io });
  const statuses = options.run === undefined ? undefined : await statusesOf(project, options.run);
  if (options.json) {
    writeLines(
      io.out,
      jsonText({ workflow: model.name, steps: describeSteps(model, { prefix: '', statuses }) }),
    );
    return exitCodes.ok;
  }
  const { formatGraph, formatMermaid } = await import('../terminal/index.ts');
  const marks = statuses ? { statuses } : {};
  writeLines(
    io.out,
    options.mermaid ? formatMermaid(model, marks) : formatGraph(model, { ...lookOf(io, 'out'), ...marks }),
  );
  return exitCodes.ok;
}

const statusesOf = (project: Project, run: string) =>
  withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, run);
    const { view } = standingOf(runId, await store.read(runId));
    return new Map(view.steps.map(({ path, status }) => [path, status]));
  });

interface Level {
  readonly prefix: string;
  readonly statuses: ReadonlyMap<string, string> | undefined;
}

function describeSteps({ steps }: WorkflowModel, level: Level): object[] {
  return steps.flatMap(step => {
    const path = `${level.prefix}${step.id}`;
    const inner =
      step.body.kind === 'uses' ? describeSteps(step.body.workflow, { ...level, prefix: `${path}/` }) : [];
    return [describeStep(path, step, level), ...inner];
  });
}

const describeStep = (path: string, { needs, optional, body }: StepModel, { prefix, statuses }: Level) => ({
  path,
  kind: body.kind,
  needs: needs.map(({ id, tolerant }) => ({ path: `${prefix}${id}`, tolerant })),
  optional,
  ...(statuses ? { status: statuses.get(path) ?? 'pending' } : {}),
});
