import type { JsonObject } from '../../core/json.ts';
import type { VisibleSteps } from '../expression/check.ts';
import { fingerprintOf } from '../fingerprint.ts';
import type { Body, Scope, StepModel } from '../model.ts';
import { type BodySite, compileApprove, compileRun, compileUses } from './body.ts';
import type { ChildLoader, LoadedWorkflow } from './children.ts';
import { type Compiled, compileCondition, type Site } from './compile.ts';
import { compileEnvironment, type Environment, surroundingsOf } from './environment.ts';
import { compileRetry, compileTimeout } from './limits.ts';
import type { ProblemList } from './problem-list.ts';
import { type StepDefinition, type StepKind, stepKinds } from './schema.ts';
import type { ShapedStep } from './shape.ts';
import type { Path, YamlSource } from './source.ts';

/** What the steps of one file have in common. */
export interface StepsContext {
  readonly source: YamlSource;
  readonly problems: ProblemList;
  /** Names of the declared inputs; `undefined` if they could not be read. */
  readonly inputs: ReadonlySet<string> | undefined;
  readonly stepIds: ReadonlySet<string>;
  /** The `env` of the workflow: compiled, its names, and as written. */
  readonly environment: Compiled<Environment>;
  readonly environmentNames: ReadonlySet<string> | undefined;
  readonly writtenEnvironment: JsonObject;
  readonly loadChild: ChildLoader;
}

/** The ids in a `needs`, each once. */
export function needsOf({ needs = [] }: Pick<StepDefinition, 'needs'>): readonly string[] {
  return typeof needs === 'string' ? [needs] : [...new Set(needs)];
}

/** One step; `undefined` if its problems leave nothing to build. */
export function compileStep(step: ShapedStep, context: StepsContext): StepModel | undefined {
  const { definition, path } = step;
  if (!definition) return undefined;
  const { source, problems } = context;
  const needs = needsOf(definition);
  const steps: VisibleSteps = { kind: 'needed', known: context.stepIds, needs, self: definition.id };
  const site = bodySite({ definition, path, context, steps });
  const conditionPath = [...path, 'if'];
  const condition =
    definition.if === undefined ? undefined : compileCondition(definition.if, conditionPath, site);
  const timeout = compileTimeout(definition, path);
  for (const complaint of timeout.complaints) problems.add(source, complaint);
  const kind = kindOf(step, definition, context);
  const child =
    definition.uses === undefined ? undefined : context.loadChild(definition.uses, source, [...path, 'uses']);
  const body = kind && compileBody({ kind, definition, site, child });
  if (!body) return undefined;
  const retry = compileRetry(definition.retry);
  return {
    id: definition.id,
    needs: needs.map(id => ({ id, tolerant: condition?.readsStatus ?? false })),
    ...(condition ? { condition: (scope: Scope) => condition.test(site.surroundings(scope)) } : {}),
    optional: definition.optional ?? false,
    ...(retry ? { retry } : {}),
    timeout: timeout.rule,
    body,
    fingerprint: fingerprintOf({
      step: step.written,
      env: context.writtenEnvironment,
      child: child?.fingerprint ?? null,
    }),
    position: source.positionOf(source.rangeOf(path).start),
  };
}

interface SiteOptions {
  readonly definition: StepDefinition;
  readonly path: Path;
  readonly context: StepsContext;
  readonly steps: VisibleSteps;
}

/** `env` of a step reads that of the workflow; everything else in the step reads both, its own first. */
function bodySite({ definition, path, context, steps }: SiteOptions): BodySite {
  const { source, problems, inputs } = context;
  const outerNames = context.environmentNames;
  const outerSite: Site = { source, problems, visible: { inputs, steps, env: outerNames } };
  const own = compileEnvironment(definition.env ?? {}, [...path, 'env'], outerSite);
  const environment = (scope: Scope): Environment => {
    const outer = context.environment(surroundingsOf(scope, () => ({})));
    return { ...outer, ...own(surroundingsOf(scope, () => outer)) };
  };
  const env = outerNames && new Set([...outerNames, ...Object.keys(definition.env ?? {})]);
  return {
    source,
    problems,
    path,
    visible: { inputs, steps, env },
    environment,
    surroundings: scope => surroundingsOf(scope, () => environment(scope)),
  };
}

interface BodyOptions {
  readonly kind: StepKind;
  readonly definition: StepDefinition;
  readonly site: BodySite;
  readonly child: LoadedWorkflow | undefined;
}

function compileBody({ kind, definition, site, child }: BodyOptions): Body | undefined {
  switch (kind) {
    case 'run':
      return definition.run === undefined ? undefined : compileRun(definition.run, definition, site);
    case 'uses':
      return child && compileUses(child.model, definition.with ?? {}, site);
    case 'approve':
      return definition.approve === undefined ? undefined : compileApprove(definition.approve, site);
  }
}

const keysOfKind: Readonly<Record<StepKind, readonly (keyof StepDefinition)[]>> = {
  run: ['shell', 'working-directory', 'output'],
  uses: ['with'],
  approve: [],
};

/** The one thing that a step does. Reports none, several, and keys that belong to another kind. */
function kindOf(
  step: ShapedStep,
  definition: StepDefinition,
  { source, problems }: StepsContext,
): StepKind | undefined {
  const [kind, second] = stepKinds.filter(key => Object.hasOwn(step.written, key));
  if (kind === undefined) {
    if (!step.isDamaged) {
      const hint =
        'add one of `run` (a shell script), `uses` (another workflow), `approve` (a question to a person)';
      problems.add(source, { path: step.path, message: `step \`${definition.id}\` does nothing`, hint });
    }
    return undefined;
  }
  if (second !== undefined) {
    const message = `a step has either \`${kind}\` or \`${second}\`, not both`;
    problems.add(source, {
      path: [...step.path, second],
      atKey: true,
      message,
      hint: 'make two steps of it',
    });
    return undefined;
  }
  for (const other of stepKinds) {
    for (const key of other === kind ? [] : keysOfKind[other]) {
      if (definition[key] === undefined) continue;
      const message = `\`${key}\` belongs to steps with \`${other}\`, and this one has \`${kind}\``;
      problems.add(source, { path: [...step.path, key], atKey: true, message });
    }
  }
  return kind;
}
