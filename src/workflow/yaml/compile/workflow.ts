import { isJsonObject, type Json, type JsonObject } from '../../../core/json.ts';
import { fingerprintOf } from '../../fingerprint.ts';
import type { Scope, WorkflowModel } from '../../model.ts';
import { type PlaceProblem, placeWork } from '../../workspace-rules.ts';
import type { ChildLoader, LoadedWorkflow } from '../children.ts';
import { compileEnvironment, surroundingsOf } from '../environment.ts';
import { checkGraph, stepIdsOf } from '../graph.ts';
import { compileSpending } from '../limits.ts';
import type { PromptReader } from '../prompt.ts';
import { type ShapedWorkflow, shapeOf } from '../shape.ts';
import type { Complaint, ProblemList } from '../source/problem-list.ts';
import type { YamlSource } from '../source/yaml-source.ts';
import { compileValue, type Site } from './expressions.ts';
import { compileInputs } from './inputs.ts';
import { compileStep, type StepsContext } from './step.ts';
import { namesOfArtifacts } from './work.ts';

/** Builds the workflow of one file, reporting all that is wrong with it; with problems the result means nothing. */
export function compileWorkflow(
  source: YamlSource,
  problems: ProblemList,
  outside: Outside,
): LoadedWorkflow | undefined {
  const shaped = source.isReadable ? shapeOf(source, problems) : undefined;
  if (!shaped) return undefined;
  const { definition, written } = shaped;
  const input = compileInputs(definition.inputs ?? {}, source, problems);
  const context = stepsContext(shaped, { source, problems, ...outside });
  const isSound = checkGraph(shaped.steps, source, problems);
  const drafts = shaped.steps.map(step => compileStep(step, context)).filter(step => step !== undefined);
  const { bodies, problems: misplaced } = placeWork(drafts);
  const steps = drafts.map(({ model }, index) => ({ ...model, body: bodies[index] ?? model.body }));
  // Where a step is missing, what it would have left behind is missing too, which is no news.
  if (isSound && drafts.length === shaped.steps.length) {
    for (const problem of misplaced) problems.add(source, complaintOf(problem));
  }
  const output = compileOutputs(definition.outputs, context);
  const { max_concurrent_workers: maxConcurrentWorkers, budget } = definition.runtime ?? {};
  const spending = compileSpending(budget);
  const model: WorkflowModel = {
    name: definition.name ?? nameFromFile(source.file),
    ...(definition.description === undefined ? {} : { description: definition.description }),
    file: source.file,
    input,
    steps,
    onFailure: definition.on_failure ?? 'fail-fast',
    ...(maxConcurrentWorkers === undefined ? {} : { maxConcurrentWorkers }),
    ...(budget?.minutes === undefined ? {} : { budgetMs: budget.minutes * 60_000 }),
    ...(spending ? { budget: spending } : {}),
    ...(output ? { output } : {}),
  };
  return { model, fingerprint: fingerprintOfWorkflow(model, written) };
}

/** How a file gets at others. */
export interface Outside {
  readonly loadChild: ChildLoader;
  readonly readPrompt: PromptReader | undefined;
}

interface StepsContextOptions extends Outside {
  readonly source: YamlSource;
  readonly problems: ProblemList;
}

function complaintOf({ index, key, message, hint }: PlaceProblem): Complaint {
  const path = ['steps', index, ...(key === 'base' ? ['workspace', key] : [key])];
  return { path, atKey: key === 'land', message, hint };
}

const sharedEnvironment = 'every step shares this environment, whatever it needs';

function stepsContext(
  { definition, steps, written }: ShapedWorkflow,
  options: StepsContextOptions,
): StepsContext {
  const { source, problems } = options;
  const inputs = namesIn(written['inputs']);
  const environment = definition.env ?? {};
  const site: Site = {
    source,
    problems,
    visible: {
      inputs,
      env: new Set(),
      steps: { kind: 'none', because: sharedEnvironment },
      matrix: { kind: 'none', because: sharedEnvironment },
    },
  };
  return {
    ...options,
    inputs,
    stepIds: stepIdsOf(steps),
    artifacts: artifactNamesOf(steps),
    environment: compileEnvironment(environment, ['env'], site),
    environmentNames: namesIn(written['env']),
    writtenEnvironment: environment,
  };
}

/** A step that was reported may have meant to leave some. */
function artifactNamesOf(steps: ShapedWorkflow['steps']): StepsContext['artifacts'] {
  return new Map(
    steps.flatMap(({ definition, isDamaged }) => {
      if (!definition || isDamaged) return [];
      const { id, artifacts, concurrency = 0, strategy, select } = definition;
      const areOfWorkers = (concurrency > 1 || strategy?.matrix !== undefined) && select === undefined;
      return [[id, areOfWorkers ? 'of each worker' : namesOfArtifacts(artifacts)] as const];
    }),
  );
}

/** As written: what was reported for its shape is declared all the same. `undefined` if nothing can be said. */
function namesIn(map: Json | undefined): ReadonlySet<string> | undefined {
  if (map === undefined) return new Set();
  return isJsonObject(map) ? new Set(Object.keys(map)) : undefined;
}

function compileOutputs(outputs: JsonObject | undefined, context: StepsContext): WorkflowModel['output'] {
  if (!outputs) return undefined;
  const visible = {
    inputs: context.inputs,
    env: context.environmentNames,
    steps: { kind: 'all', known: context.stepIds },
    artifacts: context.artifacts,
    matrix: { kind: 'none', because: 'it belongs to the copies of a step' },
  } as const;
  const value = compileValue(outputs, ['outputs'], { ...context, visible });
  return (scope: Scope) =>
    value(surroundingsOf(scope, () => context.environment(surroundingsOf(scope, () => ({})))));
}

const nameFromFile = (file: string): string =>
  (/[^/\\]*$/.exec(file)?.[0] ?? '').replace(/\.ya?ml$/i, '') || 'workflow';

/** Without its steps: they have fingerprints of their own, so that a change inside runs only what it concerns again. */
function fingerprintOfWorkflow(
  { name, onFailure }: WorkflowModel,
  { inputs = null, outputs = null }: JsonObject,
): string {
  return fingerprintOf({
    name,
    inputs,
    outputs,
    onFailure,
  });
}
