import type { Visible, VisibleMatrix, VisibleSteps } from '../expression/check.ts';
import type { Surroundings } from '../expression/evaluate.ts';
import type { Scope } from '../model.ts';
import type { Compiled, Site } from './compile/expressions.ts';
import { compileEnvironment, type Environment, surroundingsOf } from './environment.ts';
import type { StepDefinition } from './schema.ts';
import type { ProblemList } from './source/problem-list.ts';
import type { Path, YamlSource } from './source/yaml-source.ts';

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
