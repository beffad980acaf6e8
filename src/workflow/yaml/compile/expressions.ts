import { isJsonObject, type Json } from '../../../core/json.ts';
import {
  checkExpression,
  type Visible,
  type VisibleMatrix,
  type VisibleSteps,
} from '../../expression/check.ts';
import {
  evaluate,
  isTruthy,
  type KnownContext,
  type Surroundings,
  toText,
} from '../../expression/evaluate.ts';
import type { Expression, Fault } from '../../expression/parse.ts';
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

/** A value that is known once an expression can be evaluated. */
export type Compiled<T> = (surroundings: Surroundings) => T;

/** Where templates stand: what they may name, and where their problems go. */
export interface Site {
  readonly source: YamlSource;
  readonly problems: ProblemList;
  readonly visible: Visible;
}

export function reportUnknownNames(
  expression: Expression,
  path: Path,
  { source, problems, visible }: Site,
): void {
  problems.addFaults(source, path, checkExpression(expression, visible));
}

/** A scalar as text. */
export function compileText(text: string, path: Path, site: Site): Compiled<string> {
  const value = compileScalar(text, path, site);
  return surroundings => toText(value(surroundings));
}

/** A JSON value in which any text may be a template. */
export function compileValue(value: Json, path: Path, site: Site): Compiled<Json> {
  if (typeof value === 'string') return compileScalar(value, path, site);
  if (Array.isArray(value)) {
    const items = value.map((item: Json, index) => compileValue(item, [...path, index], site));
    return surroundings => items.map(item => item(surroundings));
  }
  if (!isJsonObject(value)) return () => value;
  const fields = Object.entries(value).map(
    ([key, field]) => [key, compileValue(field, [...path, key], site)] as const,
  );
  return surroundings => Object.fromEntries(fields.map(([key, field]) => [key, field(surroundings)]));
}

/** Whether a value is the same whatever the run does. */
export function isConstant(value: Json): boolean {
  if (typeof value === 'string') return !value.includes(openingMark);
  return typeof value !== 'object' || value === null || Object.values(value).every(isConstant);
}

function compileScalar(text: string, path: Path, site: Site): Compiled<Json> {
  const { faults, value } = compileTemplate(text, site.visible);
  site.problems.addFaults(site.source, path, faults);
  return value;
}

/** Text with `${{ }}` in it, wherever it comes from. */
export function compileTemplate(
  text: string,
  visible: Visible,
): { readonly faults: readonly Fault[]; readonly value: Compiled<Json> } {
  if (!text.includes(openingMark)) return { faults: [], value: () => text };
  const template = parseTemplate(text);
  const unknown = template.parts.flatMap(part =>
    typeof part === 'string' ? [] : checkExpression(part, visible),
  );
  return {
    faults: [...template.faults, ...unknown],
    value: surroundings => evaluateTemplate(template, surroundings),
  };
}

interface CompiledCondition {
  readonly test: Compiled<boolean>;
  /** It looks at how the steps before ended, so it is asked whatever that was. */
  readonly readsStatus: boolean;
}

/** An `if:`. Without a status function in it, `success()` is implied. */
export function compileCondition(
  condition: string | boolean,
  path: Path,
  site: Site,
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
    test: surroundings =>
      (isStatusRead || surroundings.status === 'success') && isTruthy(evaluate(expression, surroundings)),
  };
}

/** Where the body of a step stands and what it sees when it runs. */
export interface BodySite extends Site {
  readonly path: Path;
  readonly surroundings: (scope: Scope) => Surroundings;
  readonly environment: (scope: Scope) => Environment;
}

/** What all steps of a file see. */
export interface SharedSite {
  readonly source: YamlSource;
  readonly problems: ProblemList;
  /** Names of the declared inputs; `undefined` if they could not be read. */
  readonly inputs: ReadonlySet<string> | undefined;
  /** The `env` of the workflow: compiled, and its names. */
  readonly environment: Compiled<Environment>;
  readonly environmentNames: ReadonlySet<string> | undefined;
  /** The names of the artifacts of each step, where they could be read. */
  readonly artifacts: NonNullable<Visible['artifacts']>;
}

interface SiteOptions {
  readonly definition: StepDefinition;
  readonly path: Path;
  readonly shared: SharedSite;
  readonly steps: VisibleSteps;
  readonly matrix: VisibleMatrix;
}

/** `env` of a step reads that of the workflow; everything else in the step reads both, its own first. */
export function bodySite({ definition, path, shared, steps, matrix }: SiteOptions): BodySite {
  const { source, problems, inputs, environmentNames: outerNames } = shared;
  const { artifacts } = shared;
  const outerVisible: Visible = { inputs, steps, artifacts, matrix, env: outerNames };
  const outerSite: Site = { source, problems, visible: outerVisible };
  const own = compileEnvironment(definition.env ?? {}, [...path, 'env'], outerSite);
  const environment = (scope: Scope): Environment => {
    const outer = shared.environment(surroundingsOf(scope, () => ({})));
    return { ...outer, ...own(surroundingsOf(scope, () => outer)) };
  };
  const env = outerNames && new Set([...outerNames, ...Object.keys(definition.env ?? {})]);
  return {
    source,
    problems,
    path,
    visible: { ...outerVisible, env },
    environment,
    surroundings: scope => surroundingsOf(scope, () => environment(scope)),
  };
}

/** The same place for what is decided once for all copies of a step. */
export const withoutMatrix = (site: BodySite, because: string): BodySite => ({
  ...site,
  visible: { ...site.visible, matrix: { kind: 'none', because } },
});

type Environment = Readonly<Record<string, string>>;

/** The variables of an `env:`. */
export function compileEnvironment(
  definition: EnvironmentDefinition,
  path: Path,
  site: Site,
): Compiled<Environment> {
  const variables = Object.entries(definition).map(([name, value]) => {
    if (name.startsWith(valuePrefix)) {
      const message = `variables that begin with \`${valuePrefix}\` carry the values of \`\${{ }}\``;
      site.problems.add(site.source, {
        path: [...path, name],
        atKey: true,
        message,
        hint: 'choose another name',
      });
    }
    return [name, compileText(value === null ? '' : String(value), [...path, name], site)] as const;
  });
  return surroundings =>
    Object.fromEntries(variables.map(([name, value]) => [name, withoutNul(value(surroundings))]));
}

/** What an expression sees in a scope. The environment is worked out only if it is read, and once. */
export function surroundingsOf(scope: Scope, environment: () => Environment): Surroundings {
  let known: Environment | undefined;
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
