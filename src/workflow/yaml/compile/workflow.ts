import { isJsonObject, type Json, type JsonObject } from '../../../core/index.ts';
import { nearestName } from '../../expression/check.ts';
import { fingerprintOf, topologicalOrder } from '../../graph.ts';
import type { Scope, WorkflowModel } from '../../model.ts';
import { type PlaceProblem, placeWork } from '../../workspace-rules.ts';
import type { ChildLoader, LoadedWorkflow } from '../load.ts';
import { type ShapedStep, type ShapedWorkflow, shapeOf } from '../shape.ts';
import type { Complaint, ProblemList } from '../source/problem-list.ts';
import type { Path, ProblemContext, YamlSource } from '../source/yaml-source.ts';
import type { PromptReader } from './agent.ts';
import { compileEnvironment, compileValue, type ExpressionSite, evaluationContextOf } from './expressions.ts';
import { compileInputs } from './inputs.ts';
import { compileStep, needsOf, type StepsContext } from './step.ts';
import { compileSpending, namesOfArtifacts } from './work.ts';

/** Compiles the workflow of one file and reports all of its problems. With problems, ignore the result. */
export function compileWorkflow(
  source: YamlSource,
  problems: ProblemList,
  outside: FileReaders,
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
  // If a step could not be compiled, its work is missing too. Reporting that would only repeat the problem.
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

/** Access to other files. */
interface FileReaders {
  readonly loadChild: ChildLoader;
  readonly readPrompt: PromptReader | undefined;
}

interface StepsContextOptions extends FileReaders {
  readonly source: YamlSource;
  readonly problems: ProblemList;
}

function complaintOf({ index, key, message, hint }: PlaceProblem): Complaint {
  const path = ['steps', index, ...(key === 'base' ? ['workspace', key] : [key])];
  return { path, atKey: key === 'land', message, hint };
}

const sharedEnvironment = 'all steps share this environment';

function stepsContext(
  { definition, steps, written }: ShapedWorkflow,
  options: StepsContextOptions,
): StepsContext {
  const { source, problems } = options;
  const inputs = namesIn(written['inputs']);
  const environment = definition.env ?? {};
  const site: ExpressionSite = {
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

/** Skips steps with problems, because their `artifacts` may be the invalid key. */
function artifactNamesOf(steps: ShapedWorkflow['steps']): StepsContext['artifacts'] {
  return new Map(
    steps.flatMap(({ definition, isDamaged }) => {
      if (!definition || isDamaged) return [];
      const { id, artifacts, concurrency = 0, strategy, select } = definition;
      const isPerCopy = (concurrency > 1 || strategy?.matrix !== undefined) && select === undefined;
      return [[id, isPerCopy ? 'per copy' : namesOfArtifacts(artifacts)] as const];
    }),
  );
}

/** Returns all names as written, including those with invalid values. `undefined` if it is not a map. */
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
    matrix: { kind: 'none', because: 'it only exists in the copies of a step' },
  } as const;
  const value = compileValue(outputs, ['outputs'], { ...context, visible });
  return (scope: Scope) =>
    value(evaluationContextOf(scope, () => context.environment(evaluationContextOf(scope, () => ({})))));
}

const nameFromFile = (file: string): string =>
  (/[^/\\]*$/.exec(file)?.[0] ?? '').replace(/\.ya?ml$/i, '') || 'workflow';

/** Leaves out the steps, which have their own fingerprints. So a changed step does not rerun the whole child. */
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

interface DefinitionNode {
  readonly id: string;
  readonly step: ShapedStep;
  readonly needs: readonly { readonly id: string }[];
}

/** Returns the ids of all steps, including invalid ones, because a reference to an invalid step is valid. */
function stepIdsOf(steps: readonly ShapedStep[]): ReadonlySet<string> {
  return new Set(steps.map(({ written }) => written['id']).filter(id => typeof id === 'string'));
}

/** Reports duplicate ids, unknown needs and cycles. Returns true if there are none. */
function checkGraph(steps: readonly ShapedStep[], source: YamlSource, problems: ProblemList): boolean {
  const before = problems.count;
  const ids = stepIdsOf(steps);
  const first = new Map<string, ShapedStep>();
  const nodes: DefinitionNode[] = [];
  for (const step of steps) {
    const { definition, path } = step;
    if (!definition) continue;
    const { id } = definition;
    const earlier = first.get(id);
    if (earlier) {
      const { line } = source.positionOf(source.rangeOf([...earlier.path, 'id']).start);
      const hint = `first defined on line ${line}`;
      problems.add(source, { path: [...path, 'id'], message: `duplicate step id \`${id}\``, hint });
      continue;
    }
    first.set(id, step);
    nodes.push({ id, step, needs: knownNeeds(step, ids, { source, problems }) });
  }
  reportCycle(nodes, source, problems);
  return problems.count === before;
}

function knownNeeds(
  step: ShapedStep,
  ids: ReadonlySet<string>,
  { source, problems }: ProblemContext,
): { id: string }[] {
  const self = step.definition?.id;
  return needsOf(step.definition ?? {}).flatMap(id => {
    const path = needPath(step, id);
    if (id === self) problems.add(source, { path, message: `step \`${id}\` cannot need itself` });
    else if (!ids.has(id)) {
      const guess = nearestName(id, ids);
      problems.add(source, {
        path,
        message: `unknown step \`${id}\``,
        hint: guess && `did you mean \`${guess}\`?`,
      });
    } else return [{ id }];
    return [];
  });
}

function needPath({ definition, path }: ShapedStep, id: string): Path {
  const needs = definition?.needs;
  return Array.isArray(needs) ? [...path, 'needs', needs.indexOf(id)] : [...path, 'needs'];
}

function reportCycle(nodes: readonly DefinitionNode[], source: YamlSource, problems: ProblemList): void {
  const sorted = topologicalOrder(nodes);
  if (sorted.kind === 'ordered') return;
  const closing = nodes.find(({ id }) => id === sorted.path[0]);
  const before = sorted.path.at(-2);
  if (!closing || before === undefined) return;
  problems.add(source, {
    path: needPath(closing.step, before),
    message: `these steps need each other in a cycle: ${sorted.path.join(' -> ')}`,
    hint: 'remove one of the `needs`',
  });
}
