import { RepriseError } from '../core/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  loadDefinition,
  type Project,
  type ProjectOptions,
  selectRun,
  styleOf,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import { jsonText } from '../terminal/index.ts';
import { runStatusOf } from '../view/index.ts';
import type { StepModel, WorkflowModel } from '../workflow/index.ts';

export interface GraphCommandOptions extends ProjectOptions {
  readonly workflow: string;
  readonly mermaid?: boolean | undefined;
  readonly json?: boolean | undefined;
  /** Run whose step statuses are shown. */
  readonly run?: string | undefined;
}

/** Draws the steps of a workflow and their dependencies. Throws USAGE. */
export async function graphCommand(
  { io }: { readonly io: CommandIo },
  options: GraphCommandOptions,
): Promise<ExitCode> {
  if (options.mermaid && options.json)
    throw new RepriseError('USAGE', '--mermaid and --json cannot be combined');
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
    options.mermaid ? formatMermaid(model, marks) : formatGraph(model, { ...styleOf(io, 'out'), ...marks }),
  );
  return exitCodes.ok;
}

const statusesOf = (project: Project, run: string) =>
  withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, run);
    const { view } = runStatusOf(runId, await store.read(runId));
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
