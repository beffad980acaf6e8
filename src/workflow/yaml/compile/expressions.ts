import { isJsonObject, type Json } from '../../../core/index.ts';
import {
  checkExpression,
  type VisibleMatrix,
  type VisibleNames,
  type VisibleSteps,
} from '../../expression/check.ts';
import {
  type EvaluationContext,
  evaluate,
  isTruthy,
  type KnownContext,
  toText,
} from '../../expression/evaluate.ts';
import type { Expression, ParseFault } from '../../expression/parse.ts';
import {
  evaluateTemplate,
  openingMark,
  parseCondition,
  parseTemplate,
  readsStatus,
} from '../../expression/template.ts';
import type { Scope, StepView } from '../../model.ts';
import type { EnvironmentDefinition, StepDefinition } from '../schema.ts';
import { valuePrefix, withoutNul } from '../shell/template.ts';
import type { ProblemList } from '../source/problem-list.ts';
import type { Path, YamlSource } from '../source/yaml-source.ts';

/** A value that depends on expressions. */
export type Compiled<T> = (context: EvaluationContext) => T;

/** Context of a template: the names that it may use, and the list that receives its problems. */
export interface ExpressionSite {
  readonly source: YamlSource;
  readonly problems: ProblemList;
  readonly visible: VisibleNames;
}

export function reportUnknownNames(
  expression: Expression,
  path: Path,
  { source, problems, visible }: ExpressionSite,
): void {
  problems.addFaults(source, path, checkExpression(expression, visible));
}

/** Compiles a scalar to text. */
export function compileText(text: string, path: Path, site: ExpressionSite): Compiled<string> {
  const value = compileScalar(text, path, site);
  return context => toText(value(context));
}

/** Compiles a JSON value in which any text may be a template. */
export function compileValue(value: Json, path: Path, site: ExpressionSite): Compiled<Json> {
  if (typeof value === 'string') return compileScalar(value, path, site);
  if (Array.isArray(value)) {
    const items = value.map((item: Json, index) => compileValue(item, [...path, index], site));
    return context => items.map(item => item(context));
  }
  if (!isJsonObject(value)) return () => value;
  const fields = Object.entries(value).map(
    ([key, field]) => [key, compileValue(field, [...path, key], site)] as const,
  );
  return context => Object.fromEntries(fields.map(([key, field]) => [key, field(context)]));
}

/** Returns true if a value contains no expressions. */
export function isConstant(value: Json): boolean {
  if (typeof value === 'string') return !value.includes(openingMark);
  return typeof value !== 'object' || value === null || Object.values(value).every(isConstant);
}

function compileScalar(text: string, path: Path, site: ExpressionSite): Compiled<Json> {
  const { faults, value } = compileTemplate(text, site.visible);
  site.problems.addFaults(site.source, path, faults);
  return value;
}

/** Compiles text from any source that may contain `${{ }}`. */
export function compileTemplate(
  text: string,
  visible: VisibleNames,
): { readonly faults: readonly ParseFault[]; readonly value: Compiled<Json> } {
  if (!text.includes(openingMark)) return { faults: [], value: () => text };
  const template = parseTemplate(text);
  const unknown = template.parts.flatMap(part =>
    typeof part === 'string' ? [] : checkExpression(part, visible),
  );
  return {
    faults: [...template.faults, ...unknown],
    value: context => evaluateTemplate(template, context),
  };
}

interface CompiledCondition {
  readonly test: Compiled<boolean>;
  /** If true, the condition reads the status of earlier steps, so it is evaluated no matter how they ended. */
  readonly readsStatus: boolean;
}

/** Compiles an `if:`. Without a status function, `success()` is implied. */
export function compileCondition(
  condition: string | boolean,
  path: Path,
  site: ExpressionSite,
): CompiledCondition | undefined {
  const parsed = parseCondition(String(condition));
  if (parsed.kind === 'faults') {
    site.problems.addFaults(site.source, path, parsed.faults);
    return undefined;
  }
  const { expression } = parsed;
  reportUnknownNames(expression, path, site);
  const isStatusRead = readsStatus(expression);
  return {
    readsStatus: isStatusRead,
    test: context =>
      (isStatusRead || context.status === 'success') && isTruthy(evaluate(expression, context)),
  };
}

/** Context of the body of a step, including what it can read at run time. */
export interface BodySite extends ExpressionSite {
  readonly path: Path;
  readonly evaluationContext: (scope: Scope) => EvaluationContext;
  readonly environment: (scope: Scope) => EnvironmentTexts;
}

/** Context that all steps of a file share. */
export interface SharedSite {
  readonly source: YamlSource;
  readonly problems: ProblemList;
  /** Names of the declared inputs. `undefined` if they could not be read. */
  readonly inputs: ReadonlySet<string> | undefined;
  /** Compiled `env` of the workflow. */
  readonly environment: Compiled<EnvironmentTexts>;
  readonly environmentNames: ReadonlySet<string> | undefined;
  /** Artifact names of each step, if they could be read. */
  readonly artifacts: NonNullable<VisibleNames['artifacts']>;
}

interface SiteOptions {
  readonly definition: StepDefinition;
  readonly path: Path;
  readonly shared: SharedSite;
  readonly steps: VisibleSteps;
  readonly matrix: VisibleMatrix;
}

/** The `env` of a step can read that of the workflow. All other keys read both, and the step's own values win. */
export function bodySite({ definition, path, shared, steps, matrix }: SiteOptions): BodySite {
  const { source, problems, inputs, environmentNames: outerNames } = shared;
  const { artifacts } = shared;
  const outerVisible: VisibleNames = { inputs, steps, artifacts, matrix, env: outerNames };
  const outerSite: ExpressionSite = { source, problems, visible: outerVisible };
  const own = compileEnvironment(definition.env ?? {}, [...path, 'env'], outerSite);
  const environment = (scope: Scope): EnvironmentTexts => {
    const outer = shared.environment(evaluationContextOf(scope, () => ({})));
    return { ...outer, ...own(evaluationContextOf(scope, () => outer)) };
  };
  const env = outerNames && new Set([...outerNames, ...Object.keys(definition.env ?? {})]);
  return {
    source,
    problems,
    path,
    visible: { ...outerVisible, env },
    environment,
    evaluationContext: scope => evaluationContextOf(scope, () => environment(scope)),
  };
}

/** Returns the same context without a matrix, for values that are evaluated once for all copies. */
export const withoutMatrix = (site: BodySite, because: string): BodySite => ({
  ...site,
  visible: { ...site.visible, matrix: { kind: 'none', because } },
});

type EnvironmentTexts = Readonly<Record<string, string>>;

export function compileEnvironment(
  definition: EnvironmentDefinition,
  path: Path,
  site: ExpressionSite,
): Compiled<EnvironmentTexts> {
  const variables = Object.entries(definition).map(([name, value]) => {
    if (name.startsWith(valuePrefix)) {
      const message = `names that start with \`${valuePrefix}\` are reserved for the values of \`\${{ }}\``;
      site.problems.add(site.source, {
        path: [...path, name],
        atKey: true,
        message,
        hint: 'choose another name',
      });
    }
    return [name, compileText(value === null ? '' : String(value), [...path, name], site)] as const;
  });
  return context => Object.fromEntries(variables.map(([name, value]) => [name, withoutNul(value(context))]));
}

/** Returns the values that an expression can read in a scope. Computes the environment lazily and only once. */
export function evaluationContextOf(scope: Scope, environment: () => EnvironmentTexts): EvaluationContext {
  let known: EnvironmentTexts | undefined;
  const read = (context: KnownContext): Json => {
    switch (context) {
      case 'inputs':
        return scope.inputs;
      case 'steps':
        return Object.fromEntries(Object.entries(scope.steps).map(([id, view]) => [id, viewAsJson(view)]));
      case 'env':
        known ??= environment();
        return known;
      case 'matrix':
        return scope.matrix ?? {};
    }
  };
  return { status: scope.status, read };
}

const viewAsJson = ({ outcome, conclusion, outputs, artifacts, branch, commit }: StepView): Json => ({
  outcome,
  conclusion,
  outputs: outputs ?? null,
  artifacts: artifacts ?? {},
  branch: branch ?? null,
  commit: commit ?? null,
});
